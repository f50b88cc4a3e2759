/* What reads JSON texts bit by bit; for the files that make something of them.
 *
 * Nothing is read beyond a row's end. The texts must be valid UTF-8.
 */
#ifndef WHERRY_JSON_PARSE_H
#define WHERRY_JSON_PARSE_H

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
/* Not every file needs all of it. */
#define SHARED static inline __attribute__((unused))

/* Objects and arrays within each other. */
#define DEPTH_MAX 64

/* What is longer may be more than Jackson takes, and is left to those who count exactly: the digits of a number, the
 * bytes of a name, the characters of a text. */
#define NUMBER_BYTES_MAX 1000
#define NAME_BYTES_MAX 50000
#define TEXT_BYTES_MAX 20000000

/* Powers of ten beyond it are left to others too: Java's numbers know no end of them, but one of their digits. */
#define POWER_MAX 100000

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} cursor_t;

static inline int skip_value(cursor_t *cursor, int depth);

SHARED void skip_blanks(cursor_t *cursor) {
    while (cursor->at < cursor->end &&
           (*cursor->at == ' ' || *cursor->at == '\n' || *cursor->at == '\t' || *cursor->at == '\r'))
        cursor->at++;
}

SHARED int next_is(cursor_t *cursor, uint8_t wanted) {
    if (cursor->at >= cursor->end || *cursor->at != wanted)
        return 0;
    cursor->at++;
    return 1;
}

SHARED int word(cursor_t *cursor, const char *text, size_t size) {
    if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, text, size) != 0)
        return 0;
    cursor->at += size;
    return 1;
}

SHARED int is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

#define ONES 0x0101010101010101ULL
#define HIGHS 0x8080808080808080ULL

/* Whether any of eight bytes is a quote, a backslash or below a blank. */
SHARED int has_special(uint64_t eight) {
    uint64_t quote = eight ^ (ONES * '"'), backslash = eight ^ (ONES * '\\');
    uint64_t found = ((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | ((eight - ONES * 0x20) & ~eight);
    return (found & HIGHS) != 0;
}

SHARED int hex4(cursor_t *cursor, uint32_t *value) {
    if (cursor->end - cursor->at < 4)
        return 0;
    *value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t byte = *cursor->at++;
        uint32_t digit;
        if (is_digit(byte))
            digit = byte - '0';
        else if (byte >= 'a' && byte <= 'f')
            digit = byte - 'a' + 10;
        else if (byte >= 'A' && byte <= 'F')
            digit = byte - 'A' + 10;
        else
            return 0;
        *value = *value << 4 | digit;
    }
    return 1;
}

SHARED uint8_t *put_utf8(uint8_t *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (uint8_t)code;
    } else if (code < 0x800) {
        *to++ = (uint8_t)(0xC0 | code >> 6);
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (uint8_t)(0xE0 | code >> 12);
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else {
        *to++ = (uint8_t)(0xF0 | code >> 18);
        *to++ = (uint8_t)(0x80 | (code >> 12 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    }
    return to;
}

/* Reads what follows a backslash. A surrogate without its other half is refused. */
SHARED uint8_t *escape(cursor_t *cursor, uint8_t *to) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (cursor->at >= cursor->end)
        return NULL;
    uint8_t letter = *cursor->at++;
    if (letter != 'u') {
        const char *found = letter ? strchr(letters, letter) : NULL;
        if (!found)
            return NULL;
        *to = (uint8_t)meanings[found - letters];
        return to + 1;
    }
    uint32_t code, low;
    if (!hex4(cursor, &code) || (code >= 0xDC00 && code <= 0xDFFF))
        return NULL;
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (!word(cursor, "\\u", 2) || !hex4(cursor, &low) || low < 0xDC00 || low > 0xDFFF)
            return NULL;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return put_utf8(to, code);
}

/* Reads a text behind its opening quote, and the closing one; returns the end of what was written. */
SHARED uint8_t *text(cursor_t *cursor, uint8_t *to) {
    const uint8_t *at = cursor->at, *end = cursor->end;
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
        while (at < end && *at != '"' && *at != '\\' && *at >= 0x20)
            *to++ = *at++;
        if (at >= end)
            return NULL;
        if (*at == '"') {
            cursor->at = at + 1;
            return to;
        }
        if (*at != '\\')
            return NULL;
        cursor->at = at + 1;
        to = escape(cursor, to);
        if (!to)
            return NULL;
        at = cursor->at;
    }
}

/* Passes over a text behind its opening quote; tells whether it has escapes. */
SHARED int skip_text(cursor_t *cursor, int *escaped) {
    const uint8_t *at = cursor->at, *end = cursor->end;
    *escaped = 0;
    for (;;) {
        while (end - at >= 8) {
            uint64_t eight;
            memcpy(&eight, at, 8);
            if (has_special(eight))
                break;
            at += 8;
        }
        while (at < end && *at != '"' && *at != '\\' && *at >= 0x20)
            at++;
        if (at >= end || *at < 0x20)
            return 0;
        if (*at == '"') {
            cursor->at = at + 1;
            return 1;
        }
        *escaped = 1;
        if (end - at < 2)
            return 0;
        uint8_t letter = at[1];
        at += 2;
        if (letter == 'u') {
            uint32_t code;
            cursor->at = at;
            if (!hex4(cursor, &code))
                return 0;
            at = cursor->at;
        } else if (!letter || !strchr("\"\\/bfnrt", letter)) {
            return 0;
        }
    }
}

typedef struct {
    const uint8_t *begin;
    uint64_t digits; /* all of them as one number, while there are at most 19 that count */
    int32_t exponent;
    int negative;
    int before; /* digits before the point */
    int powered; /* with an exponent */
    int whole; /* neither fraction nor exponent */
    int exact; /* digits and exponent hold the whole truth */
} number_t;

SHARED int number(cursor_t *cursor, number_t *found) {
    const uint8_t *at = cursor->at, *end = cursor->end;
    int counted = 0;
    int64_t exponent = 0;
    found->begin = at;
    found->digits = 0;
    found->whole = found->exact = 1;
    found->powered = 0;
    found->negative = at < end && *at == '-';
    at += found->negative;
    if (at >= end || !is_digit(*at))
        return 0;
    if (*at == '0' && end - at > 1 && is_digit(at[1]))
        return 0;
    for (; at < end && is_digit(*at); at++) {
        counted += counted || *at != '0';
        found->digits = found->digits * 10 + (*at - '0');
    }
    found->before = (int)(at - found->begin) - found->negative;
    if (at < end && *at == '.') {
        const uint8_t *first = ++at;
        for (; at < end && is_digit(*at); at++) {
            counted += counted || *at != '0';
            found->digits = found->digits * 10 + (*at - '0');
        }
        if (at == first)
            return 0;
        exponent = first - at;
        found->whole = 0;
    }
    found->exact = counted <= 19;
    if (at < end && (*at == 'e' || *at == 'E')) {
        int negative = 0;
        int64_t power = 0;
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            negative = *at++ == '-';
        if (at >= end || !is_digit(*at))
            return 0;
        for (; at < end && is_digit(*at) && power <= POWER_MAX; at++)
            power = power * 10 + (*at - '0');
        if (power > POWER_MAX)
            return 0;
        exponent += negative ? -power : power;
        found->whole = 0;
        found->powered = 1;
    }
    found->exponent = (int32_t)exponent;
    cursor->at = at;
    return at - found->begin <= NUMBER_BYTES_MAX;
}

SHARED int skip_object(cursor_t *cursor, int depth) {
    skip_blanks(cursor);
    if (next_is(cursor, '}'))
        return 1;
    for (;;) {
        int escaped;
        const uint8_t *name = cursor->at;
        if (!next_is(cursor, '"') || !skip_text(cursor, &escaped) || cursor->at - name > NAME_BYTES_MAX)
            return 0;
        skip_blanks(cursor);
        if (!next_is(cursor, ':') || !skip_value(cursor, depth))
            return 0;
        skip_blanks(cursor);
        if (next_is(cursor, '}'))
            return 1;
        if (!next_is(cursor, ','))
            return 0;
        skip_blanks(cursor);
    }
}

SHARED int skip_array(cursor_t *cursor, int depth) {
    skip_blanks(cursor);
    if (next_is(cursor, ']'))
        return 1;
    for (;;) {
        if (!skip_value(cursor, depth))
            return 0;
        skip_blanks(cursor);
        if (next_is(cursor, ']'))
            return 1;
        if (!next_is(cursor, ','))
            return 0;
    }
}

SHARED int skip_value(cursor_t *cursor, int depth) {
    number_t ignored;
    int escaped;
    skip_blanks(cursor);
    if (cursor->at >= cursor->end || depth >= DEPTH_MAX)
        return 0;
    switch (*cursor->at) {
    case '{':
        cursor->at++;
        return skip_object(cursor, depth + 1);
    case '[':
        cursor->at++;
        return skip_array(cursor, depth + 1);
    case '"':
        cursor->at++;
        return skip_text(cursor, &escaped);
    case 't':
        return word(cursor, "true", 4);
    case 'f':
        return word(cursor, "false", 5);
    case 'n':
        return word(cursor, "null", 4);
    default:
        return number(cursor, &ignored);
    }
}

static locale_t c_locale;
static pthread_once_t c_locale_made = PTHREAD_ONCE_INIT;

SHARED void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* The double nearest to a number; there is something behind it in the row, so that reading it ends there. */
SHARED int nearest(const number_t *found, double *value) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (found->exact && found->digits <= 1ULL << 53 && found->exponent >= -22 && found->exponent <= 22) {
        /* Both are exact doubles, so that one operation rounds once. */
        double digits = (double)found->digits;
        digits = found->exponent < 0 ? digits / powers[-found->exponent] : digits * powers[found->exponent];
        *value = found->negative ? -digits : digits;
    } else {
        pthread_once(&c_locale_made, make_c_locale);
        if (!c_locale)
            return 0;
        *value = strtod_l((const char *)found->begin, NULL, c_locale);
    }
    /* Connect knows no negative zero. */
    *value += 0.0;
    return isfinite(*value);
}

#endif
