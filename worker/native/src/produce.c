/* Hands columns of records to a producer, and notes the records that brokers would not take.
 *
 * The producer is the caller's, made by confluent_kafka, which serves everything that calls back. It would call its own
 * code for each record that failed, with what it keeps about records it has produced itself; of those produced here it
 * knows nothing, and is told nothing. So failures are noticed by an interceptor: this library is named as the producer's
 * plugin (`plugin.library.paths`), and librdkafka tells it of every producer made with it and of every record that is
 * done with. Only producers known that way are ever used, so that a handle can't be mistaken for one.
 *
 * The same interceptor counts what is under way, so that rows are only handed over as fast as they can be sent. An
 * idempotent producer has five requests under way for each partition. While a batch more is waiting for its turn,
 * librdkafka's thread looks again and again whether it may be sent (a whole core for nothing, taken from those it waits
 * for), and what lies in a long queue has left the processor's caches when it is sent. A shorter one is as fast.
 *
 * Any thread may be told of a record; everything else is called by one thread at a time for each producer.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "librdkafka.h"

#define EXPORT __attribute__((visibility("default")))

/* Records kept of those that failed: a flood needn't be kept whole. */
#define FAILURES_MAX 1000
#define FAILURES_BYTES_MAX (64 << 20)
/* Reasons told apart: the first record of each is kept, for one may say that nothing more is taken. */
#define REASONS_MAX 32
#define UNASSIGNED (-1)
#define COPY 0x2
#define NAME "wherry"
/* Bytes that a record of the log has beside key and value. */
#define RECORD_BYTES 16
/* Places of a table in which partitions are told apart: nearly all, and that is near enough. */
#define PARTITIONS_MAX 4096
#define NANOSECONDS 1000000000

/* Numbers of librdkafka's public interface. */
enum { VTYPE_END, VTYPE_TOPIC, VTYPE_RKT, VTYPE_PARTITION, VTYPE_VALUE, VTYPE_KEY, VTYPE_OPAQUE, VTYPE_FLAGS, VTYPE_TIME };
enum { OK = 0, PURGED_IN_QUEUE = -152, PURGED_IN_FLIGHT = -151, QUEUE_FULL = -184, FAILED = -196 };

/* A binary column of Arrow; validity is NULL where no value is. The bits of validity begin at its `offset`-th. */
typedef struct {
    const int32_t *offsets; /* of the first row on */
    const uint8_t *data;
    const uint8_t *validity;
    int64_t offset;
} wherry_binary_t;

/* Rows of one topic. keys, timestamps and partitions are NULL where no row has one. */
typedef struct {
    const char *topic;
    const wherry_binary_t *values;
    const wherry_binary_t *keys;
    const int64_t *timestamps;
    int64_t timestamp; /* of all rows where there are no timestamps; 0 is now */
    const int32_t *partitions;
    int32_t rows;
} wherry_produced_t;

/* A record that failed. A NULL value or key has the size -1. */
typedef struct failure {
    struct failure *next;
    int32_t code;
    int32_t topic_size;
    int64_t value_size;
    int64_t key_size;
    uint8_t data[]; /* topic, value, key */
} failure_t;

typedef struct producer {
    struct producer *next;
    rd_kafka_t *rk;
    pthread_mutex_t mutex;
    failure_t *first;
    failure_t *last;
    int64_t failures; /* all that were not taken yet, kept or not */
    int64_t kept;
    int64_t kept_bytes;
    int32_t reasons[REASONS_MAX]; /* librdkafka's codes of those kept */
    int32_t reason_count;
    _Atomic int64_t under_way;   /* bytes */
    _Atomic int64_t rows_under_way;
    _Atomic int64_t wake_at;     /* whoever waits is woken when no more bytes than these are under way; -1: nobody waits */
    _Atomic int32_t partitions;  /* that have taken so much that they count: offsets beside the records don't */
    _Atomic int64_t met[PARTITIONS_MAX]; /* bytes taken, up to those of the window */
    int64_t window; /* bytes that may be under way for a partition; 0 for any number */
    int64_t rows_window;
    pthread_cond_t room;
} producer_t;

static pthread_mutex_t producers_mutex = PTHREAD_MUTEX_INITIALIZER;
static producer_t *producers;
static librdkafka_producing_t lib;
static void *library;
/* Whether this thread is handing records over: what fails there is told by the call itself. */
static __thread int producing;
static const uint8_t nothing[1];

static int64_t size_of(const void *data, size_t size) { return data ? (int64_t)size : -1; }

static uint8_t *put(uint8_t *to, const void *data, int64_t size) {
    if (size > 0)
        memcpy(to, data, (size_t)size);
    return to + (size > 0 ? size : 0);
}

/* Whether no record that is kept has failed for this reason; takes note of it. */
static int is_new_reason(producer_t *producer, int32_t code) {
    for (int32_t i = 0; i < producer->reason_count; i++)
        if (producer->reasons[i] == code)
            return 0;
    if (producer->reason_count == REASONS_MAX)
        return 0;
    producer->reasons[producer->reason_count++] = code;
    return 1;
}

static void note(producer_t *producer, const rd_kafka_message_t *message) {
    const char *topic = lib.rd_kafka_topic_name(message->rkt);
    int64_t value = size_of(message->payload, message->len), key = size_of(message->key, message->key_len);
    size_t size = strlen(topic) + (value > 0 ? value : 0) + (key > 0 ? key : 0);
    pthread_mutex_lock(&producer->mutex);
    /* The first is kept however large it is: it tells what is wrong. */
    int keep = is_new_reason(producer, message->err) ||
               (producer->kept < FAILURES_MAX && producer->kept_bytes + (int64_t)size <= FAILURES_BYTES_MAX);
    failure_t *failure = keep ? malloc(sizeof *failure + size) : NULL;
    if (failure) {
        failure->next = NULL;
        failure->code = message->err;
        failure->topic_size = (int32_t)strlen(topic);
        failure->value_size = value;
        failure->key_size = key;
        put(put(put(failure->data, topic, failure->topic_size), message->payload, value), message->key, key);
        if (producer->last)
            producer->last->next = failure;
        else
            producer->first = failure;
        producer->last = failure;
        producer->kept++;
        producer->kept_bytes += (int64_t)size;
    }
    producer->failures++;
    pthread_mutex_unlock(&producer->mutex);
}

static int64_t bytes_of(const rd_kafka_message_t *message) {
    return (int64_t)(message->len + message->key_len) + RECORD_BYTES;
}

/* Told of every record that was taken, before it can be sent. */
static int taken(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
    producer_t *producer = opaque;
    (void)rk;
    atomic_fetch_add_explicit(&producer->under_way, bytes_of(message), memory_order_relaxed);
    atomic_fetch_add_explicit(&producer->rows_under_way, 1, memory_order_relaxed);
    return OK;
}

static void meet(producer_t *producer, const rd_kafka_message_t *message, int64_t size) {
    if (message->partition < 0 || !producer->window)
        return;
    uint64_t name = ((uint64_t)(uintptr_t)message->rkt >> 4) + (uint64_t)message->partition * 2654435761u;
    _Atomic int64_t *place = &producer->met[name % PARTITIONS_MAX];
    if (atomic_load_explicit(place, memory_order_relaxed) >= producer->window)
        return;
    int64_t before = atomic_fetch_add_explicit(place, size, memory_order_relaxed);
    if (before < producer->window && before + size >= producer->window)
        atomic_fetch_add(&producer->partitions, 1);
}

/* Told of every record that is done with. One that confluent_kafka has produced has what belongs to it in _private. */
static int acknowledged(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
    producer_t *producer = opaque;
    (void)rk;
    int64_t size = bytes_of(message);
    meet(producer, message, size);
    atomic_fetch_sub_explicit(&producer->rows_under_way, 1, memory_order_relaxed);
    int64_t left = atomic_fetch_sub(&producer->under_way, size) - size;
    if (left <= atomic_load(&producer->wake_at)) {
        pthread_mutex_lock(&producer->mutex);
        atomic_store(&producer->wake_at, -1);
        pthread_cond_signal(&producer->room);
        pthread_mutex_unlock(&producer->mutex);
    }
    if (message->err && !message->_private && !producing && message->err != PURGED_IN_QUEUE &&
        message->err != PURGED_IN_FLIGHT)
        note(producer, message);
    return OK;
}

static void forget(producer_t *producer) {
    pthread_cond_destroy(&producer->room);
    pthread_mutex_destroy(&producer->mutex);
    free(producer);
}

static int destroyed(rd_kafka_t *rk, void *opaque) {
    producer_t *producer = opaque;
    (void)rk;
    pthread_mutex_lock(&producers_mutex);
    producer_t **place = &producers;
    while (*place && *place != producer)
        place = &(*place)->next;
    if (*place)
        *place = producer->next;
    pthread_mutex_unlock(&producers_mutex);
    while (producer->first) {
        failure_t *failure = producer->first;
        producer->first = failure->next;
        free(failure);
    }
    forget(producer);
    return OK;
}

static int made(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *trouble, size_t size) {
    (void)opaque, (void)trouble, (void)size;
    if (lib.rd_kafka_type(rk) == CONSUMER_TYPE) {
        /* confluent_kafka always names a callback of its own, which only its own calls can bear. The client is being
         * made, so that nothing else looks at its settings yet; there is no earlier place where they can be changed. */
        lib.rd_kafka_conf_set_error_cb((rd_kafka_conf_t *)conf, wherry_kafka_note);
        return OK;
    }
    producer_t *producer = calloc(1, sizeof *producer);
    if (!producer)
        return FAILED;
    producer->rk = rk;
    atomic_store(&producer->wake_at, -1);
    pthread_mutex_init(&producer->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&producer->room, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (lib.rd_kafka_interceptor_add_on_destroy(rk, NAME, destroyed, producer) != OK) {
        forget(producer);
        return FAILED;
    }
    /* Without both it is never found, and so never used. */
    if (lib.rd_kafka_interceptor_add_on_send(rk, NAME, taken, producer) == OK &&
        lib.rd_kafka_interceptor_add_on_acknowledgement(rk, NAME, acknowledged, producer) == OK) {
        pthread_mutex_lock(&producers_mutex);
        producer->next = producers;
        producers = producer;
        pthread_mutex_unlock(&producers_mutex);
    }
    return OK;
}

/* What librdkafka calls in each library that `plugin.library.paths` names. */
EXPORT int conf_init(rd_kafka_conf_t *conf, void **opaque, char *trouble, size_t size) {
    (void)opaque, (void)trouble, (void)size;
    return library ? lib.rd_kafka_conf_interceptor_add_on_new(conf, NAME, made, NULL) : FAILED;
}

/* Finds librdkafka's functions; path is that of the one that is loaded already. Must come before a producer is made.
 * Returns 0 where one is missing. */
EXPORT int wherry_producer_bind(const char *path) {
    pthread_mutex_lock(&producers_mutex);
    if (!library) {
        void *loaded = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        int found = loaded != NULL;
#define BIND(result, name, arguments) found = found && (*(void **)&lib.name = dlsym(loaded, #name)) != NULL;
        LIBRDKAFKA_PRODUCING_FUNCTIONS(BIND)
#undef BIND
        library = found ? loaded : NULL;
    }
    int bound = library != NULL;
    pthread_mutex_unlock(&producers_mutex);
    return bound;
}

/* Returns what is kept about a producer; NULL unless the handle is one that was made with this plugin. */
EXPORT producer_t *wherry_producer_find(const rd_kafka_t *rk) {
    pthread_mutex_lock(&producers_mutex);
    producer_t *producer = producers;
    while (producer && producer->rk != rk)
        producer = producer->next;
    pthread_mutex_unlock(&producers_mutex);
    return producer;
}

static const void *cell(const wherry_binary_t *column, int32_t row, size_t *size) {
    *size = 0;
    if (!column)
        return NULL;
    int64_t bit = column->offset + row;
    if (column->validity && !(column->validity[bit >> 3] >> (bit & 7) & 1))
        return NULL;
    *size = (size_t)(column->offsets[row + 1] - column->offsets[row]);
    /* An empty value is not an absent one, and a column of empty values has no data. */
    return *size ? column->data + column->offsets[row] : nothing;
}

/* Bounds what may be under way for each partition; 0 for any number. */
EXPORT void wherry_producer_window(producer_t *producer, int64_t bytes, int64_t rows) {
    producer->window = bytes;
    producer->rows_window = rows;
}

static int64_t partitions_of(producer_t *producer) {
    int32_t partitions = atomic_load_explicit(&producer->partitions, memory_order_relaxed);
    return partitions ? partitions : 1;
}

static int has_room(producer_t *producer, int64_t partitions) {
    return (!producer->window ||
            atomic_load_explicit(&producer->under_way, memory_order_relaxed) < producer->window * partitions) &&
           (!producer->rows_window ||
            atomic_load_explicit(&producer->rows_under_way, memory_order_relaxed) < producer->rows_window * partitions);
}

/* Waits until a tenth of what is under way is done with, or so long. */
static void wait_for_some(producer_t *producer, int64_t wait_ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + wait_ns;
    until.tv_sec += nanoseconds / NANOSECONDS;
    until.tv_nsec = nanoseconds % NANOSECONDS;
    pthread_mutex_lock(&producer->mutex);
    int64_t now = atomic_load(&producer->under_way), enough = now - now / 10 - 1;
    atomic_store(&producer->wake_at, enough);
    /* Either this sees what is done with, or whoever is done with it sees that somebody waits. */
    while (enough >= 0 && atomic_load(&producer->under_way) > enough && atomic_load(&producer->wake_at) >= 0)
        if (pthread_cond_timedwait(&producer->room, &producer->mutex, &until) != 0)
            break;
    atomic_store(&producer->wake_at, -1);
    pthread_mutex_unlock(&producer->mutex);
}

/* Waits until there is room for more rows, or so long; tells whether there is. */
EXPORT int wherry_producer_room(producer_t *producer, int64_t wait_ns) {
    if (!has_room(producer, partitions_of(producer)))
        wait_for_some(producer, wait_ns);
    return has_room(producer, partitions_of(producer));
}

/* Hands over rows from `start` on, until one is refused; tells where it has stopped and why (0: all are handed over).
 *
 * Where there is no room it waits, but no longer than wait_ns at a time: then it says that the queue is full. Without
 * a bound only the queue itself may be full.
 */
EXPORT int32_t wherry_produce(producer_t *producer, const wherry_produced_t *produced, int32_t start, int64_t wait_ns,
                              int32_t bounded, int32_t *stopped) {
    rd_kafka_topic_t *topic = lib.rd_kafka_topic_new(producer->rk, produced->topic, NULL);
    *stopped = start;
    if (!topic)
        return lib.rd_kafka_last_error();
    int code = OK;
    int waited = 0;
    for (int32_t row = start; row < produced->rows;) {
        size_t value_size, key_size;
        const void *value = cell(produced->values, row, &value_size), *key = cell(produced->keys, row, &key_size);
        code = QUEUE_FULL;
        if (!bounded || has_room(producer, partitions_of(producer))) {
            producing = 1;
            code = lib.rd_kafka_producev(
                producer->rk, VTYPE_RKT, topic, VTYPE_FLAGS, COPY, VTYPE_PARTITION,
                produced->partitions ? produced->partitions[row] : (int32_t)UNASSIGNED, VTYPE_VALUE, value, value_size,
                VTYPE_KEY, key, key_size, VTYPE_TIME,
                produced->timestamps ? produced->timestamps[row] : produced->timestamp, VTYPE_END);
            producing = 0;
        }
        if (code == QUEUE_FULL && !waited) {
            wait_for_some(producer, wait_ns);
            waited = 1;
            continue;
        }
        if (code != OK)
            break;
        waited = 0;
        *stopped = ++row;
    }
    lib.rd_kafka_topic_destroy(topic);
    return code;
}

/* How many records have failed since this was asked last, of which those kept can be taken one after another. */
EXPORT int64_t wherry_producer_failures(producer_t *producer) {
    pthread_mutex_lock(&producer->mutex);
    int64_t failures = producer->failures;
    producer->failures = 0;
    pthread_mutex_unlock(&producer->mutex);
    return failures;
}

/* Takes the first of the records kept, to be given back to `wherry_failure_free`; NULL when there is none. */
EXPORT failure_t *wherry_producer_failure(producer_t *producer) {
    pthread_mutex_lock(&producer->mutex);
    failure_t *failure = producer->first;
    if (failure) {
        producer->first = failure->next;
        if (!producer->first) {
            producer->last = NULL;
            producer->reason_count = 0;
        }
        producer->kept--;
        producer->kept_bytes -= failure->topic_size + (failure->value_size > 0 ? failure->value_size : 0) +
                                (failure->key_size > 0 ? failure->key_size : 0);
    }
    pthread_mutex_unlock(&producer->mutex);
    return failure;
}

EXPORT void wherry_failure_free(failure_t *failure) { free(failure); }
