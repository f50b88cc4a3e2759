/* JSON objects into Arrow columns of a known type, or nothing: what isn't plainly right is left to others.
 *
 * A row is taken when it is one object, sound JSON to its end, in which every member that the type names is there at
 * most once and of its kind exactly: true and false for booleans, whole numbers in range for integers, any number for
 * floating point, text for text. null and a missing member are taken where the field allows it. Members that the type
 * doesn't name are checked and left out. The first row of any other make ends the work, and its index is the answer.
 *
 * Read strictly, a row is taken only if a column says all that its text says: its members are those of the type, all of
 * them, in that order, and numbers and texts are written as they would be written again.
 *
 * The texts must be valid UTF-8. Nothing is read beyond a row's end, and nothing is allocated.
 */
#define _GNU_SOURCE
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Objects and arrays within each other. */
#define DEPTH_MAX 64
/* Text may be written so far beyond its end: it is copied eight bytes at a time. */
#define TEXT_SLACK 8
#define DAY_MS 86400000
/* Whole numbers below it have 18 digits at most, and fit. */
#define WHOLE_END 1000000000000000000ULL
/* With so many digits before the point no number is printed with an exponent. */
#define WHOLE_DIGITS_MAX 16

enum { KIND_STRUCT, KIND_BOOL, KIND_INT8, KIND_INT16, KIND_INT32, KIND_INT64, KIND_FLOAT, KIND_DOUBLE, KIND_TEXT, KIND_TIME };

/* A field, and the buffers its rows go into. The field of index 0 is the object itself; children follow one another. */
typedef struct {
    int32_t kind;
    int32_t null_allowed;
    int32_t first_child;
    int32_t children;
    const char *name;
    int64_t name_size;
    uint8_t *validity; /* all bits set by the caller */
    void *values;      /* bits of booleans, all clear; offsets of text */
    uint8_t *text;
    int64_t text_size;
    int32_t nulls;
    int32_t seen; /* number, from 1, of the last row that had it */
} wherry_field_t;

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    wherry_field_t *fields;
    int32_t row;
    int32_t strict;
} cursor_t;

static int skip_value(cursor_t *cursor, int depth);

static inline void skip_blanks(cursor_t *cursor) {
    while (cursor->at < cursor->end &&
           (*cursor->at == ' ' || *cursor->at == '\n' || *cursor->at == '\t' || *cursor->at == '\r'))
        cursor->at++;
}

static inline int next_is(cursor_t *cursor, uint8_t wanted) {
    if (cursor->at >= cursor->end || *cursor->at != wanted)
        return 0;
    cursor->at++;
    return 1;
}

static inline int word(cursor_t *cursor, const char *text, size_t size) {
    if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, text, size) != 0)
        return 0;
    cursor->at += size;
    return 1;
}

static inline int is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

#define ONES 0x0101010101010101ULL
#define HIGHS 0x8080808080808080ULL

/* Whether any of eight bytes is a quote, a backslash or below a blank. */
static inline int has_special(uint64_t eight) {
    uint64_t quote = eight ^ (ONES * '"'), backslash = eight ^ (ONES * '\\');
    uint64_t found = ((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | ((eight - ONES * 0x20) & ~eight);
    return (found & HIGHS) != 0;
}

static int hex4(cursor_t *cursor, uint32_t *value) {
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

static uint8_t *put_utf8(uint8_t *to, uint32_t code) {
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
static uint8_t *escape(cursor_t *cursor, uint8_t *to) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (cursor->at >= cursor->end)
        return NULL;
    uint8_t letter = *cursor->at++;
    if (letter == 'u' && cursor->strict)
        return NULL;
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
static uint8_t *text(cursor_t *cursor, uint8_t *to) {
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
static int skip_text(cursor_t *cursor, int *escaped) {
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

static int number(cursor_t *cursor, number_t *found) {
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
        for (; at < end && is_digit(*at); at++)
            if (power < 100000)
                power = power * 10 + (*at - '0');
        exponent += negative ? -power : power;
        found->whole = 0;
        found->powered = 1;
    }
    found->exponent = (int32_t)exponent;
    cursor->at = at;
    return 1;
}

static int skip_object(cursor_t *cursor, int depth) {
    skip_blanks(cursor);
    if (next_is(cursor, '}'))
        return 1;
    for (;;) {
        int escaped;
        if (!next_is(cursor, '"') || !skip_text(cursor, &escaped))
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

static int skip_array(cursor_t *cursor, int depth) {
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

static int skip_value(cursor_t *cursor, int depth) {
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

static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* The double nearest to a number; there is something behind it in the row, so that reading it ends there. */
static int nearest(const number_t *found, double *value) {
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

static int whole(const number_t *found, int64_t least, int64_t greatest, int64_t *value) {
    if (!found->whole || !found->exact || found->digits > (uint64_t)INT64_MAX)
        return 0;
    *value = found->negative ? -(int64_t)found->digits : (int64_t)found->digits;
    return *value >= least && *value <= greatest;
}

static void put_null(wherry_field_t *fields, wherry_field_t *field, int32_t row) {
    field->validity[row / 8] &= (uint8_t)~(1u << (row % 8));
    field->nulls++;
    switch (field->kind) {
    case KIND_STRUCT:
        for (int32_t i = 0; i < field->children; i++)
            put_null(fields, &fields[field->first_child + i], row);
        break;
    case KIND_BOOL:
        break;
    case KIND_INT8:
        ((int8_t *)field->values)[row] = 0;
        break;
    case KIND_INT16:
        ((int16_t *)field->values)[row] = 0;
        break;
    case KIND_INT32:
    case KIND_TIME:
        ((int32_t *)field->values)[row] = 0;
        break;
    case KIND_INT64:
        ((int64_t *)field->values)[row] = 0;
        break;
    case KIND_FLOAT:
        ((float *)field->values)[row] = 0;
        break;
    case KIND_DOUBLE:
        ((double *)field->values)[row] = 0;
        break;
    case KIND_TEXT:
        ((int32_t *)field->values)[row + 1] = (int32_t)field->text_size;
        break;
    }
}

static int object(cursor_t *cursor, wherry_field_t *field, int depth);

/* Whether a number would be written again as it stands there. */
static int is_plain(const number_t *found, int kind) {
    if (found->negative && !found->digits && found->exact)
        return 0;
    if (kind == KIND_DOUBLE)
        return !found->whole && !found->powered && found->before <= WHOLE_DIGITS_MAX;
    return found->whole && found->exact && found->digits < WHOLE_END;
}

static int put_number(cursor_t *cursor, wherry_field_t *field) {
    number_t found;
    int64_t integer;
    double real;
    int32_t row = cursor->row;
    if (!number(cursor, &found) || cursor->at >= cursor->end || (cursor->strict && !is_plain(&found, field->kind)))
        return 0;
    switch (field->kind) {
    case KIND_INT8:
        if (!whole(&found, INT8_MIN, INT8_MAX, &integer))
            return 0;
        ((int8_t *)field->values)[row] = (int8_t)integer;
        return 1;
    case KIND_INT16:
        if (!whole(&found, INT16_MIN, INT16_MAX, &integer))
            return 0;
        ((int16_t *)field->values)[row] = (int16_t)integer;
        return 1;
    case KIND_INT32:
        if (!whole(&found, INT32_MIN, INT32_MAX, &integer))
            return 0;
        ((int32_t *)field->values)[row] = (int32_t)integer;
        return 1;
    case KIND_TIME:
        if (!whole(&found, 0, DAY_MS - 1, &integer))
            return 0;
        ((int32_t *)field->values)[row] = (int32_t)integer;
        return 1;
    case KIND_INT64:
        if (!whole(&found, INT64_MIN, INT64_MAX, &integer))
            return 0;
        ((int64_t *)field->values)[row] = integer;
        return 1;
    case KIND_FLOAT:
        if (!nearest(&found, &real) || !isfinite((float)real))
            return 0;
        ((float *)field->values)[row] = (float)real;
        return 1;
    default:
        if (!nearest(&found, &real))
            return 0;
        ((double *)field->values)[row] = real;
        return 1;
    }
}

/* Reads the value of a member that the type names. */
static int value(cursor_t *cursor, wherry_field_t *field, int depth) {
    skip_blanks(cursor);
    if (cursor->at >= cursor->end)
        return 0;
    uint8_t first = *cursor->at;
    if (first == 'n') {
        if (!field->null_allowed || !word(cursor, "null", 4))
            return 0;
        put_null(cursor->fields, field, cursor->row);
        return 1;
    }
    switch (field->kind) {
    case KIND_STRUCT:
        return first == '{' && object(cursor, field, depth + 1);
    case KIND_BOOL:
        if (first == 't' && word(cursor, "true", 4)) {
            ((uint8_t *)field->values)[cursor->row / 8] |= (uint8_t)(1u << (cursor->row % 8));
            return 1;
        }
        return first == 'f' && word(cursor, "false", 5);
    case KIND_TEXT: {
        if (first != '"')
            return 0;
        cursor->at++;
        uint8_t *end = text(cursor, field->text + field->text_size);
        if (!end)
            return 0;
        field->text_size = end - field->text;
        ((int32_t *)field->values)[cursor->row + 1] = (int32_t)field->text_size;
        return 1;
    }
    default:
        return put_number(cursor, field);
    }
}

/* The field that a member's name means: most likely the one after the last; NULL for one that the type doesn't name. */
static wherry_field_t *named(wherry_field_t *children, int32_t count, int32_t guess, const uint8_t *name, int64_t size) {
    for (int32_t step = 0; step < count; step++) {
        int32_t index = guess + step < count ? guess + step : guess + step - count;
        if (children[index].name_size == size && memcmp(children[index].name, name, (size_t)size) == 0)
            return &children[index];
    }
    return NULL;
}

static int members(cursor_t *cursor, wherry_field_t *children, int32_t count, int depth) {
    int32_t guess = 0, seen = 0, mark = cursor->row + 1;
    for (;;) {
        int escaped;
        if (!next_is(cursor, '"'))
            return -1;
        const uint8_t *name = cursor->at;
        wherry_field_t *child = NULL;
        if (guess < count && cursor->end - name > children[guess].name_size &&
            name[children[guess].name_size] == '"' &&
            memcmp(name, children[guess].name, (size_t)children[guess].name_size) == 0) {
            child = &children[guess];
            cursor->at = name + child->name_size + 1;
        } else {
            /* A name with escapes might be any other in disguise. */
            if (!skip_text(cursor, &escaped) || escaped)
                return -1;
            child = named(children, count, guess, name, cursor->at - 1 - name);
        }
        skip_blanks(cursor);
        if (!next_is(cursor, ':'))
            return -1;
        if (cursor->strict && (seen == count || child != &children[seen]))
            return -1;
        if (child) {
            /* Of a member given twice the last would count. */
            if (child->seen == mark || !value(cursor, child, depth))
                return -1;
            child->seen = mark;
            seen++;
            guess = (int32_t)(child - children) + 1;
        } else if (!skip_value(cursor, depth)) {
            return -1;
        }
        skip_blanks(cursor);
        if (next_is(cursor, '}'))
            return seen;
        if (!next_is(cursor, ','))
            return -1;
        skip_blanks(cursor);
    }
}

static int object(cursor_t *cursor, wherry_field_t *field, int depth) {
    wherry_field_t *children = cursor->fields + field->first_child;
    int32_t seen = 0;
    if (depth >= DEPTH_MAX || !next_is(cursor, '{'))
        return 0;
    skip_blanks(cursor);
    if (!next_is(cursor, '}')) {
        seen = members(cursor, children, field->children, depth);
        if (seen < 0)
            return 0;
    }
    if (cursor->strict && seen < field->children)
        return 0;
    for (int32_t i = 0; seen < field->children && i < field->children; i++) {
        if (children[i].seen == cursor->row + 1)
            continue;
        if (!children[i].null_allowed)
            return 0;
        put_null(cursor->fields, &children[i], cursor->row);
    }
    return 1;
}

static inline int is_null(const uint8_t *validity, int64_t bit) {
    return validity && !(validity[bit / 8] >> (bit % 8) & 1);
}

/* Reads rows into the buffers of the fields; returns how many were read: fewer than there are ends at an odd row.
 *
 * head and tail are bytes to leave out at both ends of every row that isn't null; strict is said above. Text buffers need room for all bytes
 * of the rows and TEXT_SLACK more; offsets of text are one more than the rows.
 */
EXPORT int32_t wherry_json_read(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                                int64_t validity_offset, int32_t rows, int32_t head, int32_t tail, int32_t strict,
                                wherry_field_t *fields, int32_t fields_count) {
    cursor_t cursor = {NULL, NULL, fields, 0, strict};
    for (int32_t i = 0; i < fields_count; i++)
        if (fields[i].kind == KIND_TEXT)
            ((int32_t *)fields[i].values)[0] = 0;
    for (int32_t row = 0; row < rows; row++) {
        cursor.row = row;
        if (is_null(validity, validity_offset + row)) {
            put_null(fields, fields, row);
            continue;
        }
        cursor.at = data + offsets[row] + head;
        cursor.end = data + offsets[row + 1] - tail;
        if (cursor.at >= cursor.end)
            return row;
        skip_blanks(&cursor);
        if (!object(&cursor, fields, 0))
            return row;
        skip_blanks(&cursor);
        if (cursor.at != cursor.end)
            return row;
    }
    return rows;
}

/* Returns how many rows, from the first on, are null or one sound JSON object each. */
EXPORT int32_t wherry_json_check(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                                 int64_t validity_offset, int32_t rows) {
    cursor_t cursor = {NULL, NULL, NULL, 0, 0};
    for (int32_t row = 0; row < rows; row++) {
        if (is_null(validity, validity_offset + row))
            continue;
        cursor.at = data + offsets[row];
        cursor.end = data + offsets[row + 1];
        skip_blanks(&cursor);
        if (cursor.at >= cursor.end || *cursor.at != '{' || !skip_value(&cursor, 0))
            return row;
        skip_blanks(&cursor);
        if (cursor.at != cursor.end)
            return row;
    }
    return rows;
}

#define HASH_BEGIN 0xCBF29CE484222325ULL
#define HASH_STEP 0x100000001B3ULL

/* What tells the members of an object and their order, from another's; 0 where it is none that can be told. */
static uint64_t shape(cursor_t *cursor) {
    uint64_t hash = HASH_BEGIN;
    int escaped;
    skip_blanks(cursor);
    if (!next_is(cursor, '{'))
        return 0;
    skip_blanks(cursor);
    if (next_is(cursor, '}'))
        return hash;
    for (;;) {
        if (!next_is(cursor, '"'))
            return 0;
        const uint8_t *name = cursor->at;
        if (!skip_text(cursor, &escaped))
            return 0;
        /* With the closing quote, so that two names are not one. */
        for (; name < cursor->at; name++)
            hash = (hash ^ *name) * HASH_STEP;
        skip_blanks(cursor);
        if (!next_is(cursor, ':') || !skip_value(cursor, 0))
            return 0;
        skip_blanks(cursor);
        if (next_is(cursor, '}'))
            return hash;
        if (!next_is(cursor, ','))
            return 0;
        skip_blanks(cursor);
    }
}

/* Tells which rows are objects of the same members in the same order: those of the same number, but for chance. */
EXPORT void wherry_json_shapes(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                               int64_t validity_offset, int32_t rows, uint64_t *shapes) {
    cursor_t cursor = {NULL, NULL, NULL, 0, 0};
    for (int32_t row = 0; row < rows; row++) {
        cursor.at = data + offsets[row];
        cursor.end = data + offsets[row + 1];
        shapes[row] = is_null(validity, validity_offset + row) ? 0 : shape(&cursor);
    }
}
