/* Takes messages out of the queues of a consumer's partitions and lays them out as Arrow buffers.
 *
 * The consumer is the caller's, made and assigned by confluent_kafka. Each partition's queue is taken off the consumer's
 * own, which keeps what calls back into Python (logs, tokens) where the caller serves it. Errors come by a partition's
 * queue, too, as that it is not there, and would call back wherever they are met; so they are noted here, and told by
 * the next poll: nothing here ever runs Python. A poll is two calls: `wherry_kafka_poll` takes messages and says how much room they need,
 * `wherry_kafka_fill` copies them into the caller's buffers and lets go of them.
 *
 * One thread at a time uses a reader. librdkafka's threads only ever signal it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "librdkafka.h"

#define EXPORT __attribute__((visibility("default")))

/* Messages taken out of a queue at once, between two looks at the bytes taken so far. */
#define CHUNK_MESSAGES 512
/* Events (ends of partitions, errors) told by one poll at most: it ends with the chunk in which there are some. */
#define EVENTS_MAX CHUNK_MESSAGES
#define EVENT_TEXT_MAX 160
/* Errors of the consumer kept for the next poll; a flood of them needn't be kept whole. */
#define NOTED_MAX 64
/* Offsets of Arrow's binary columns are 32 bits wide. */
#define COLUMN_BYTES_MAX INT32_MAX

typedef struct {
    int32_t partition; /* index among the reader's partitions; -1: told of the consumer */
    int32_t code;
    int64_t offset;
    char text[EVENT_TEXT_MAX];
} wherry_event_t;

/* What a poll has taken; the sizes tell how large the buffers for `wherry_kafka_fill` must be. */
typedef struct {
    int32_t rows;
    int32_t runs;
    int32_t events;
    int32_t value_nulls;
    int32_t key_nulls;
    int32_t timestamp_nulls;
    int32_t headers;
    int32_t header_value_nulls;
    int64_t value_bytes;
    int64_t key_bytes;
    int64_t header_name_bytes;
    int64_t header_value_bytes;
} wherry_taken_t;

/* Where the rows go. A validity that isn't needed is NULL, as are all key or header buffers where there are none. */
typedef struct {
    int32_t *value_offsets;
    uint8_t *value_data;
    uint8_t *value_validity;
    int32_t *key_offsets;
    uint8_t *key_data;
    uint8_t *key_validity;
    int64_t *timestamps;
    uint8_t *timestamp_validity;
    int64_t *offsets;
    int32_t *header_counts;
    int32_t *header_name_offsets;
    uint8_t *header_names;
    int32_t *header_value_offsets;
    uint8_t *header_values;
    uint8_t *header_validity;
} wherry_columns_t;

typedef struct reader {
    struct reader *next_reader;
    const rd_kafka_t *rk;
    librdkafka_t lib;
    void *library;
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    uint64_t arrivals;
    int32_t partitions;
    int32_t next; /* where the next poll begins, so that each partition gets its turn */
    rd_kafka_queue_t **queues;
    rd_kafka_message_t **messages;
    int32_t capacity;
    int32_t rows;
    int32_t *run_partition;
    int32_t *run_rows;
    int32_t noted_count;
    wherry_event_t noted[NOTED_MAX];
    wherry_event_t events[EVENTS_MAX + NOTED_MAX];
} wherry_kafka_t;

static pthread_mutex_t readers_mutex = PTHREAD_MUTEX_INITIALIZER;
static wherry_kafka_t *readers;

static void put_text(wherry_event_t *event, const void *text, size_t size) {
    if (size >= EVENT_TEXT_MAX)
        size = EVENT_TEXT_MAX - 1;
    if (size)
        memcpy(event->text, text, size);
    event->text[size] = 0;
}

/* Called by whoever serves a queue of the consumer, which is the one thread that uses its reader. */
void wherry_kafka_note(rd_kafka_t *rk, int code, const char *text, void *opaque) {
    (void)opaque;
    pthread_mutex_lock(&readers_mutex);
    wherry_kafka_t *reader = readers;
    while (reader && reader->rk != rk)
        reader = reader->next_reader;
    pthread_mutex_unlock(&readers_mutex);
    if (!reader || reader->noted_count == NOTED_MAX)
        return;
    wherry_event_t *event = &reader->noted[reader->noted_count++];
    event->partition = -1;
    event->code = code;
    event->offset = -1;
    put_text(event, text, text ? strlen(text) : 0);
}

static void tell_noted(wherry_kafka_t *reader, wherry_taken_t *taken) {
    memcpy(reader->events + taken->events, reader->noted, (size_t)reader->noted_count * sizeof *reader->noted);
    taken->events += reader->noted_count;
    reader->noted_count = 0;
}

static void arrived(rd_kafka_t *rk, void *opaque) {
    wherry_kafka_t *reader = opaque;
    (void)rk;
    pthread_mutex_lock(&reader->mutex);
    reader->arrivals++;
    pthread_cond_signal(&reader->arrived);
    pthread_mutex_unlock(&reader->mutex);
}

static int bind(librdkafka_t *lib, void *library) {
#define BIND(result, name, arguments)                                                                                \
    *(void **)&lib->name = dlsym(library, #name);                                                                    \
    if (!lib->name)                                                                                                  \
        return 0;
    LIBRDKAFKA_FUNCTIONS(BIND)
#undef BIND
    return 1;
}

static void let_go(wherry_kafka_t *reader) {
    for (int32_t row = 0; row < reader->rows; row++)
        reader->lib.rd_kafka_message_destroy(reader->messages[row]);
    reader->rows = 0;
}

/* Lets go of everything; must come before the consumer is closed. */
EXPORT void wherry_kafka_close(wherry_kafka_t *reader) {
    if (!reader)
        return;
    pthread_mutex_lock(&readers_mutex);
    wherry_kafka_t **place = &readers;
    while (*place && *place != reader)
        place = &(*place)->next_reader;
    if (*place)
        *place = reader->next_reader;
    pthread_mutex_unlock(&readers_mutex);
    let_go(reader);
    for (int32_t index = 0; reader->queues && index < reader->partitions; index++) {
        if (!reader->queues[index])
            continue;
        reader->lib.rd_kafka_queue_cb_event_enable(reader->queues[index], NULL, NULL);
        reader->lib.rd_kafka_queue_destroy(reader->queues[index]);
    }
    if (reader->library)
        dlclose(reader->library);
    pthread_cond_destroy(&reader->arrived);
    pthread_mutex_destroy(&reader->mutex);
    free(reader->queues);
    free(reader->messages);
    free(reader->run_partition);
    free(reader->run_rows);
    free(reader);
}

/* Takes the queues of partitions off a consumer.
 *
 * library is the path of the librdkafka that made rk, which is loaded already. name_begin is how the client's name has
 * to begin: a handle that isn't what it seems is refused. Returns NULL when anything is not as expected.
 */
EXPORT wherry_kafka_t *wherry_kafka_open(const char *library, rd_kafka_t *rk, const char *name_begin,
                                         const char **topics, const int32_t *numbers, int32_t partitions) {
    wherry_kafka_t *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&reader->arrived, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&reader->mutex, NULL);
    reader->library = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (!reader->library || !bind(&reader->lib, reader->library) || reader->lib.rd_kafka_type(rk) != CONSUMER_TYPE)
        goto refused;
    const char *name = reader->lib.rd_kafka_name(rk);
    if (!name || strncmp(name, name_begin, strlen(name_begin)) != 0)
        goto refused;
    reader->queues = calloc(partitions ? partitions : 1, sizeof *reader->queues);
    reader->run_partition = calloc(partitions ? partitions : 1, sizeof *reader->run_partition);
    reader->run_rows = calloc(partitions ? partitions : 1, sizeof *reader->run_rows);
    if (!reader->queues || !reader->run_partition || !reader->run_rows)
        goto refused;
    reader->partitions = partitions;
    for (int32_t index = 0; index < partitions; index++) {
        reader->queues[index] = reader->lib.rd_kafka_queue_get_partition(rk, topics[index], numbers[index]);
        if (!reader->queues[index])
            goto refused;
        reader->lib.rd_kafka_queue_forward(reader->queues[index], NULL);
        reader->lib.rd_kafka_queue_cb_event_enable(reader->queues[index], arrived, reader);
    }
    reader->rk = rk;
    pthread_mutex_lock(&readers_mutex);
    reader->next_reader = readers;
    readers = reader;
    pthread_mutex_unlock(&readers_mutex);
    return reader;
refused:
    wherry_kafka_close(reader);
    return NULL;
}

static int reserve(wherry_kafka_t *reader, int32_t rows) {
    if (rows <= reader->capacity)
        return 1;
    rd_kafka_message_t **messages = realloc(reader->messages, (size_t)rows * sizeof *messages);
    if (!messages)
        return 0;
    reader->messages = messages;
    reader->capacity = rows;
    return 1;
}

static void count_headers(const librdkafka_t *lib, const rd_kafka_message_t *message, wherry_taken_t *taken) {
    rd_kafka_headers_t *headers;
    if (lib->rd_kafka_message_headers(message, &headers) != 0)
        return;
    const char *name;
    const void *value;
    size_t size;
    for (size_t i = 0; lib->rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; i++) {
        taken->headers++;
        taken->header_name_bytes += strlen(name);
        if (value)
            taken->header_value_bytes += size;
        else
            taken->header_value_nulls++;
    }
}

/* Sorts out what a queue gave: rows are kept and counted, events told and let go of. */
static void sort_out(wherry_kafka_t *reader, int32_t partition, rd_kafka_message_t **messages, ssize_t count,
                     wherry_taken_t *taken) {
    for (ssize_t i = 0; i < count; i++) {
        rd_kafka_message_t *message = messages[i];
        if (message->err) {
            wherry_event_t *event = &reader->events[taken->events++];
            event->partition = partition;
            event->code = message->err;
            event->offset = message->offset;
            put_text(event, message->payload, message->payload ? message->len : 0);
            reader->lib.rd_kafka_message_destroy(message);
            continue;
        }
        reader->messages[reader->rows++] = message;
        if (message->payload)
            taken->value_bytes += message->len;
        else
            taken->value_nulls++;
        if (message->key)
            taken->key_bytes += message->key_len;
        else
            taken->key_nulls++;
        int kind;
        if (reader->lib.rd_kafka_message_timestamp(message, &kind) < 0)
            taken->timestamp_nulls++;
        count_headers(&reader->lib, message, taken);
    }
}

/* Takes from one partition; returns the rows taken. */
static int32_t take(wherry_kafka_t *reader, int32_t partition, int32_t rows_max, int64_t bytes_max,
                    wherry_taken_t *taken) {
    rd_kafka_message_t *chunk[CHUNK_MESSAGES];
    int32_t before = reader->rows;
    while (!taken->events && reader->rows < rows_max && taken->value_bytes + taken->key_bytes < bytes_max) {
        size_t wanted = rows_max - reader->rows < CHUNK_MESSAGES ? rows_max - reader->rows : CHUNK_MESSAGES;
        ssize_t count = reader->lib.rd_kafka_consume_batch_queue(reader->queues[partition], 0, chunk, wanted);
        if (count <= 0)
            break;
        sort_out(reader, partition, chunk, count, taken);
        if ((size_t)count < wanted)
            break;
    }
    return reader->rows - before;
}

static void take_all(wherry_kafka_t *reader, int32_t rows_max, int64_t bytes_max, wherry_taken_t *taken) {
    int32_t first = reader->next;
    for (int32_t step = 0; step < reader->partitions; step++) {
        int32_t partition = (first + step) % reader->partitions;
        int32_t rows = take(reader, partition, rows_max, bytes_max, taken);
        if (rows) {
            reader->run_partition[taken->runs] = partition;
            reader->run_rows[taken->runs++] = rows;
        }
        reader->next = (partition + 1) % reader->partitions;
        if (taken->events || reader->rows >= rows_max || taken->value_bytes + taken->key_bytes >= bytes_max)
            break;
    }
    taken->rows = reader->rows;
}

static struct timespec after(int32_t timeout_ms) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    return at;
}

/* Waits for the first message or event, then takes what is there without waiting.
 *
 * Returns 0, or -1 when there is no memory or a column would not fit: nothing can be read on then.
 */
EXPORT int wherry_kafka_poll(wherry_kafka_t *reader, int32_t timeout_ms, int32_t rows_max, int64_t bytes_max,
                             wherry_taken_t *taken, const int32_t **run_partition, const int32_t **run_rows,
                             const wherry_event_t **events) {
    struct timespec deadline = after(timeout_ms);
    let_go(reader);
    memset(taken, 0, sizeof *taken);
    *run_partition = reader->run_partition;
    *run_rows = reader->run_rows;
    *events = reader->events;
    if (!reserve(reader, rows_max))
        return -1;
    for (;;) {
        pthread_mutex_lock(&reader->mutex);
        uint64_t seen = reader->arrivals;
        pthread_mutex_unlock(&reader->mutex);
        take_all(reader, rows_max, bytes_max, taken);
        if (taken->rows || taken->events || reader->noted_count)
            break;
        int waited = 0;
        pthread_mutex_lock(&reader->mutex);
        while (reader->arrivals == seen && waited != ETIMEDOUT)
            waited = pthread_cond_timedwait(&reader->arrived, &reader->mutex, &deadline);
        pthread_mutex_unlock(&reader->mutex);
        if (waited == ETIMEDOUT)
            break;
    }
    tell_noted(reader, taken);
    return taken->value_bytes > COLUMN_BYTES_MAX || taken->key_bytes > COLUMN_BYTES_MAX ||
                   taken->header_name_bytes > COLUMN_BYTES_MAX || taken->header_value_bytes > COLUMN_BYTES_MAX
               ? -1
               : 0;
}

static inline void set_bit(uint8_t *bits, int32_t row, int set) {
    if (!bits)
        return;
    if (row % 8 == 0)
        bits[row / 8] = 0;
    bits[row / 8] |= (uint8_t)(set ? 1u << (row % 8) : 0);
}

typedef struct {
    int32_t count;
    int32_t name_end;
    int32_t value_end;
} headers_end_t;

static void fill_headers(const librdkafka_t *lib, const rd_kafka_message_t *message, wherry_columns_t *columns,
                         headers_end_t *end) {
    rd_kafka_headers_t *headers;
    if (lib->rd_kafka_message_headers(message, &headers) != 0)
        return;
    const char *name;
    const void *value;
    size_t size;
    for (size_t i = 0; lib->rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; i++) {
        size_t name_size = strlen(name);
        memcpy(columns->header_names + end->name_end, name, name_size);
        end->name_end += (int32_t)name_size;
        set_bit(columns->header_validity, end->count, value != NULL);
        if (value && size) {
            memcpy(columns->header_values + end->value_end, value, size);
            end->value_end += (int32_t)size;
        }
        end->count++;
        columns->header_name_offsets[end->count] = end->name_end;
        columns->header_value_offsets[end->count] = end->value_end;
    }
}

static inline int32_t fill_binary(int32_t row, int32_t end, const void *data, size_t size, int32_t *offsets,
                                  uint8_t *target, uint8_t *validity) {
    set_bit(validity, row, data != NULL);
    if (data && size) {
        memcpy(target + end, data, size);
        end += (int32_t)size;
    }
    offsets[row + 1] = end;
    return end;
}

/* Copies the rows of the last poll into the buffers and lets go of the messages. */
EXPORT void wherry_kafka_fill(wherry_kafka_t *reader, wherry_columns_t *columns) {
    int32_t value_end = 0, key_end = 0;
    headers_end_t headers = {0, 0, 0};
    columns->value_offsets[0] = 0;
    if (columns->key_offsets)
        columns->key_offsets[0] = 0;
    if (columns->header_counts) {
        columns->header_counts[0] = 0;
        columns->header_name_offsets[0] = 0;
        columns->header_value_offsets[0] = 0;
    }
    for (int32_t row = 0; row < reader->rows; row++) {
        rd_kafka_message_t *message = reader->messages[row];
        value_end = fill_binary(row, value_end, message->payload, message->len, columns->value_offsets,
                                columns->value_data, columns->value_validity);
        if (columns->key_offsets)
            key_end = fill_binary(row, key_end, message->key, message->key_len, columns->key_offsets,
                                  columns->key_data, columns->key_validity);
        int kind;
        int64_t timestamp = reader->lib.rd_kafka_message_timestamp(message, &kind);
        columns->timestamps[row] = timestamp;
        set_bit(columns->timestamp_validity, row, timestamp >= 0);
        columns->offsets[row] = message->offset;
        if (columns->header_counts) {
            fill_headers(&reader->lib, message, columns, &headers);
            columns->header_counts[row + 1] = headers.count;
        }
        reader->lib.rd_kafka_message_destroy(message);
    }
    reader->rows = 0;
}
