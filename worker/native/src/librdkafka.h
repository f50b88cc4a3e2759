/* The part of librdkafka's public interface that is used here, bound at run time.
 *
 * confluent_kafka brings its own librdkafka, without headers; the library that is loaded already is looked up by its
 * path. Types and prototypes are those of the stable C interface of librdkafka 1.x and 2.x.
 */
#ifndef WHERRY_LIBRDKAFKA_H
#define WHERRY_LIBRDKAFKA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct rd_kafka_headers_s rd_kafka_headers_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;

typedef struct rd_kafka_message_s {
    int err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *_private;
} rd_kafka_message_t;

typedef void (*rd_kafka_event_cb_t)(rd_kafka_t *rk, void *opaque);
typedef void (*rd_kafka_error_cb_t)(rd_kafka_t *rk, int code, const char *text, void *opaque);
typedef int (*rd_kafka_on_new_t)(rd_kafka_t *, const rd_kafka_conf_t *, void *, char *, size_t);
typedef int (*rd_kafka_on_destroy_t)(rd_kafka_t *, void *);
/* Of a record that was just taken, and of one that is done with. */
typedef int (*rd_kafka_on_message_t)(rd_kafka_t *, rd_kafka_message_t *, void *);

/* Each line: result, name, arguments. */
#define LIBRDKAFKA_FUNCTIONS(F)                                                                                      \
    F(const char *, rd_kafka_name, (const rd_kafka_t *))                                                             \
    F(int, rd_kafka_type, (const rd_kafka_t *))                                                                      \
    F(rd_kafka_queue_t *, rd_kafka_queue_get_partition, (rd_kafka_t *, const char *, int32_t))                       \
    F(void, rd_kafka_queue_forward, (rd_kafka_queue_t *, rd_kafka_queue_t *))                                        \
    F(void, rd_kafka_queue_cb_event_enable, (rd_kafka_queue_t *, rd_kafka_event_cb_t, void *))                       \
    F(void, rd_kafka_queue_destroy, (rd_kafka_queue_t *))                                                            \
    F(ssize_t, rd_kafka_consume_batch_queue, (rd_kafka_queue_t *, int, rd_kafka_message_t **, size_t))               \
    F(void, rd_kafka_message_destroy, (rd_kafka_message_t *))                                                        \
    F(int64_t, rd_kafka_message_timestamp, (const rd_kafka_message_t *, int *))                                      \
    F(int, rd_kafka_message_headers, (const rd_kafka_message_t *, rd_kafka_headers_t **))                            \
    F(size_t, rd_kafka_header_cnt, (const rd_kafka_headers_t *))                                                     \
    F(int, rd_kafka_header_get_all,                                                                                  \
      (const rd_kafka_headers_t *, size_t, const char **, const void **, size_t *))

#define LIBRDKAFKA_PRODUCING_FUNCTIONS(F)                                                                            \
    F(rd_kafka_topic_t *, rd_kafka_topic_new, (rd_kafka_t *, const char *, rd_kafka_topic_conf_t *))                 \
    F(void, rd_kafka_topic_destroy, (rd_kafka_topic_t *))                                                            \
    F(const char *, rd_kafka_topic_name, (const rd_kafka_topic_t *))                                                 \
    F(int, rd_kafka_last_error, (void))                                                                              \
    F(int, rd_kafka_producev, (rd_kafka_t *, ...))                                                                   \
    F(int, rd_kafka_type, (const rd_kafka_t *))                                                                      \
    F(void, rd_kafka_conf_set_error_cb, (rd_kafka_conf_t *, rd_kafka_error_cb_t))                                    \
    F(int, rd_kafka_conf_interceptor_add_on_new, (rd_kafka_conf_t *, const char *, rd_kafka_on_new_t, void *))       \
    F(int, rd_kafka_interceptor_add_on_destroy, (rd_kafka_t *, const char *, rd_kafka_on_destroy_t, void *))         \
    F(int, rd_kafka_interceptor_add_on_send, (rd_kafka_t *, const char *, rd_kafka_on_message_t, void *))            \
    F(int, rd_kafka_interceptor_add_on_acknowledgement, (rd_kafka_t *, const char *, rd_kafka_on_message_t, void *))

#define DECLARE(result, name, arguments) result(*name) arguments;
typedef struct {
    LIBRDKAFKA_FUNCTIONS(DECLARE)
} librdkafka_t;
typedef struct {
    LIBRDKAFKA_PRODUCING_FUNCTIONS(DECLARE)
} librdkafka_producing_t;
#undef DECLARE

#define CONSUMER_TYPE 1

/* Keeps what librdkafka tells of a consumer, for its reader's next poll. */
void wherry_kafka_note(rd_kafka_t *rk, int code, const char *text, void *opaque);

#endif
