/* Arrow columns as JSON texts, byte for byte as Jackson and Java write them; a value that isn't plainly right is left.
 *
 * A row is a struct whose fields are booleans, numbers, texts, structs, or texts of JSON made elsewhere. Numbers are
 * printed as Java's toString does: the fewest digits that tell them apart, an exponent beyond the plain range. Control
 * characters and what lies beyond the basic plane are escaped. The first row that holds a number that others have to
 * print (not finite, or a power of two with many digits) ends the work.
 */
#define _GNU_SOURCE
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_put.h"

#define EXPORT __attribute__((visibility("default")))

/* Bytes that one byte of text may become: \u00xx. */
#define ESCAPED_BYTES_MAX 6
#define DIGITS_MAX 20

enum { KIND_STRUCT, KIND_BOOL, KIND_INT8, KIND_INT16, KIND_INT32, KIND_INT64, KIND_FLOAT, KIND_DOUBLE, KIND_TEXT, KIND_RAW };

/* A column. The one of index 0 is the row itself; children follow one another. */
typedef struct {
    int32_t kind;
    int32_t first_child;
    int32_t children;
    int32_t head_size;
    const char *head; /* what stands before the value: a comma and its name */
    const char *null_text;
    int64_t null_size;
    const uint8_t *validity; /* NULL where nothing is null */
    const void *values;      /* offsets of text; bits of booleans */
    const uint8_t *text;
    int64_t offset; /* index of the first row in validity and values */
    const uint8_t *there; /* which objects have it; NULL where all do */
    int64_t there_offset;
} wherry_written_t;

typedef struct {
    uint64_t digits;
    int32_t count; /* of the digits */
    int32_t point; /* how many of them stand before the point; may be negative or more than there are */
} decimal_t;

static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static locale_t c_locale;
static pthread_once_t c_locale_made = PTHREAD_ONCE_INIT;

static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

int wherry_enter_c(locale_t *before) {
    pthread_once(&c_locale_made, make_c_locale);
    if (!c_locale)
        return 0;
    *before = uselocale(c_locale);
    return 1;
}

static inline int is_set(const uint8_t *bits, int64_t bit) { return bits[bit / 8] >> (bit % 8) & 1; }

static int32_t count_digits(uint64_t digits) {
    int32_t count = 1;
    while (digits >= 10) {
        digits /= 10;
        count++;
    }
    return count;
}

static uint8_t *put_whole(uint8_t *to, uint64_t number) {
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
                                "49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
                                "9899";
    uint8_t reversed[DIGITS_MAX];
    uint8_t *at = reversed + DIGITS_MAX;
    while (number >= 100) {
        at -= 2;
        memcpy(at, pairs + 2 * (number % 100), 2);
        number /= 100;
    }
    if (number >= 10) {
        at -= 2;
        memcpy(at, pairs + 2 * number, 2);
    } else {
        *--at = (uint8_t)('0' + number);
    }
    size_t size = (size_t)(reversed + DIGITS_MAX - at);
    memcpy(to, at, size);
    return to + size;
}

static uint8_t *put_integer(uint8_t *to, int64_t number) {
    if (number < 0) {
        *to++ = '-';
        return put_whole(to, 0 - (uint64_t)number);
    }
    return put_whole(to, (uint64_t)number);
}

/* Takes the digits out of what printf has written as d.ddde±xx, without zeros at their end. */
static void parse_printed(const char *printed, decimal_t *found) {
    const char *at = printed;
    found->digits = 0;
    found->count = 0;
    int32_t zeros = 0;
    for (; *at && *at != 'e'; at++) {
        if (*at < '0' || *at > '9')
            continue;
        if (*at == '0') {
            zeros++;
            continue;
        }
        for (; zeros; zeros--, found->count++)
            found->digits *= 10;
        found->digits = found->digits * 10 + (uint64_t)(*at - '0');
        found->count++;
    }
    found->point = (int32_t)strtol(at + 1, NULL, 10) + 1;
}

/* The fewest decimals that tell a number apart from its neighbours, tried with exact powers of ten.
 *
 * limit is ten to the number of digits that every such number keeps: below it no two decimals are one number. */
static int by_scaling(double size, double limit, int is_float, decimal_t *found) {
    for (int32_t scale = 0; scale <= 22; scale++) {
        double scaled = size * POWERS[scale];
        if (scaled >= limit)
            return 0;
        uint64_t digits = (uint64_t)(scaled + 0.5);
        double again = (double)digits / POWERS[scale];
        if (is_float ? (float)again == (float)size : again == size) {
            if (!digits)
                return 0;
            found->count = count_digits(digits);
            found->point = found->count - scale;
            found->digits = digits;
            for (; found->digits % 10 == 0; found->digits /= 10)
                found->count--;
            return 1;
        }
    }
    return 0;
}

static int shortest(double size, int is_float, decimal_t *found) {
    char printed[40];
    int exponent;
    if (by_scaling(size, is_float ? 1e6 : 1e15, is_float, found))
        return 1;
    /* Next to a power of two numbers lie closer on one side than on the other. */
    if (frexp(size, &exponent) == 0.5 || (is_float ? size < 1.2e-38 : size < 2.3e-308))
        return 0;
    for (int digits = is_float ? 6 : 15; digits <= (is_float ? 9 : 17); digits++) {
        snprintf(printed, sizeof printed, "%.*e", digits - 1, size);
        if (is_float ? strtof_l(printed, NULL, c_locale) == (float)size : strtod_l(printed, NULL, c_locale) == size) {
            parse_printed(printed, found);
            return 1;
        }
    }
    return 0;
}

static uint8_t *put_zeros(uint8_t *to, int32_t count) {
    memset(to, '0', (size_t)count);
    return to + count;
}

/* Prints as Java's toString does; NULL for what others have to print. */
static uint8_t *put_real(uint8_t *to, double number, int is_float) {
    uint8_t digits[DIGITS_MAX];
    decimal_t found;
    if (!isfinite(number))
        return NULL;
    if (signbit(number)) {
        *to++ = '-';
        number = -number;
    }
    if (number == 0) {
        memcpy(to, "0.0", 3);
        return to + 3;
    }
    if (!shortest(number, is_float, &found))
        return NULL;
    put_whole(digits, found.digits);
    int32_t count = found.count, point = found.point;
    if (point > -3 && point <= 7) {
        int32_t before = point < 0 ? 0 : point < count ? point : count;
        memcpy(to, digits, (size_t)before);
        to += before;
        if (point <= 0)
            *to++ = '0';
        else
            to = put_zeros(to, point - before);
        *to++ = '.';
        if (point < 0)
            to = put_zeros(to, -point);
        if (before == count)
            *to++ = '0';
        memcpy(to, digits + before, (size_t)(count - before));
        return to + (count - before);
    }
    /* Of a single digit Java prints a second, which need not be zero. */
    if (count == 1)
        return NULL;
    *to++ = digits[0];
    *to++ = '.';
    memcpy(to, digits + 1, (size_t)(count - 1));
    to += count - 1;
    *to++ = 'E';
    return put_integer(to, point - 1);
}

uint8_t *wherry_put_real(uint8_t *to, double number) { return put_real(to, number, 0); }

#define ONES 0x0101010101010101ULL
#define HIGHS 0x8080808080808080ULL

/* Whether any of eight bytes is a quote, a backslash, below a blank, or begins a character beyond the basic plane. */
static inline int has_special(uint64_t eight) {
    uint64_t quote = eight ^ (ONES * '"'), backslash = eight ^ (ONES * '\\');
    uint64_t found = ((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | ((eight - ONES * 0x20) & ~eight);
    found |= eight & eight << 1 & eight << 2 & eight << 3;
    return (found & HIGHS) != 0;
}

static uint8_t *put_escape(uint8_t *to, uint32_t unit) {
    static const char hex[] = "0123456789ABCDEF";
    *to++ = '\\';
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *to++ = (uint8_t)hex[unit >> shift & 0xF];
    return to;
}

uint8_t *wherry_put_special(uint8_t *to, const uint8_t **at) {
    static const char letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    uint8_t byte = **at;
    const char *found = byte ? strchr(letters, byte) : NULL;
    if (found) {
        *to++ = '\\';
        *to++ = (uint8_t)names[found - letters];
        *at += 1;
        return to;
    }
    if (byte < 0x20) {
        *at += 1;
        return put_escape(to, byte);
    }
    const uint8_t *four = *at;
    uint32_t code = (uint32_t)(four[0] & 7) << 18 | (uint32_t)(four[1] & 0x3F) << 12 | (uint32_t)(four[2] & 0x3F) << 6 |
                    (uint32_t)(four[3] & 0x3F);
    *at += 4;
    code -= 0x10000;
    to = put_escape(to, 0xD800 + (code >> 10));
    return put_escape(to, 0xDC00 + (code & 0x3FF));
}

static uint8_t *put_text(uint8_t *to, const uint8_t *at, const uint8_t *end) {
    *to++ = '"';
    for (;;) {
        while (end - at >= 8) {
            uint64_t eight;
            memcpy(&eight, at, 8);
            memcpy(to, at, 8);
            if (has_special(eight))
                break;
            at += 8;
            to += 8;
        }
        while (at < end && *at != '"' && *at != '\\' && *at >= 0x20 && *at < 0xF0)
            *to++ = *at++;
        if (at >= end)
            break;
        to = wherry_put_special(to, &at);
    }
    *to++ = '"';
    return to;
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, int64_t size) {
    memcpy(to, bytes, (size_t)size);
    return to + size;
}

static uint8_t *put_value(uint8_t *to, const wherry_written_t *fields, const wherry_written_t *field, int32_t row) {
    int64_t at = field->offset + row;
    if (field->validity && !is_set(field->validity, at))
        return put_bytes(to, field->null_text, field->null_size);
    switch (field->kind) {
    case KIND_STRUCT: {
        uint8_t *open = to;
        for (int32_t i = 0; i < field->children && to; i++) {
            const wherry_written_t *child = &fields[field->first_child + i];
            if (!child->there || is_set(child->there, child->there_offset + row))
                to = put_value(put_bytes(to, child->head, child->head_size), fields, child, row);
        }
        if (!to)
            return NULL;
        /* In the place of the first comma. */
        *open = '{';
        to += to == open;
        *to++ = '}';
        return to;
    }
    case KIND_BOOL:
        return is_set(field->values, at) ? put_bytes(to, "true", 4) : put_bytes(to, "false", 5);
    case KIND_INT8:
        return put_integer(to, ((const int8_t *)field->values)[at]);
    case KIND_INT16:
        return put_integer(to, ((const int16_t *)field->values)[at]);
    case KIND_INT32:
        return put_integer(to, ((const int32_t *)field->values)[at]);
    case KIND_INT64:
        return put_integer(to, ((const int64_t *)field->values)[at]);
    case KIND_FLOAT:
        return put_real(to, ((const float *)field->values)[at], 1);
    case KIND_DOUBLE:
        return put_real(to, ((const double *)field->values)[at], 0);
    default: {
        const int32_t *offsets = (const int32_t *)field->values + at;
        const uint8_t *begin = field->text + offsets[0], *end = field->text + offsets[1];
        return field->kind == KIND_TEXT ? put_text(to, begin, end) : put_bytes(to, begin, end - begin);
    }
    }
}

/* Bytes that the texts of a row may take; those of nulls as well, which may hold anything. */
static int64_t text_room(const wherry_written_t *fields, int32_t count, int32_t row) {
    int64_t room = 0;
    for (int32_t i = 0; i < count; i++) {
        if (fields[i].kind != KIND_TEXT && fields[i].kind != KIND_RAW)
            continue;
        const int32_t *offsets = (const int32_t *)fields[i].values + fields[i].offset + row;
        room += (int64_t)(offsets[1] - offsets[0]) * (fields[i].kind == KIND_TEXT ? ESCAPED_BYTES_MAX : 1);
    }
    return room;
}

/* Writes rows one behind the other; returns how many, fewer than there are where one is odd.
 *
 * row_room is what a row may take beside its texts. offsets are one more than the rows. Where the room for the data ends
 * too early the answer is -1.
 */
EXPORT int32_t wherry_json_write(const wherry_written_t *fields, int32_t count, int32_t rows, int64_t row_room,
                                 int32_t *offsets, uint8_t *data, int64_t room) {
    locale_t before;
    if (!wherry_enter_c(&before))
        return 0;
    uint8_t *to = data;
    int32_t row = 0;
    offsets[0] = 0;
    for (; row < rows; row++) {
        if (to - data + row_room + text_room(fields, count, row) > room) {
            row = -1;
            break;
        }
        uint8_t *end = put_value(to, fields, fields, row);
        if (!end)
            break;
        to = end;
        offsets[row + 1] = (int32_t)(to - data);
    }
    uselocale(before);
    return row;
}
