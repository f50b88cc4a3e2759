/* JSON objects into Arrow columns of a known type, or nothing: what isn't plainly right is left to others.
 *
 * A row is taken when it is one object, sound JSON to its end, in which every member that the type names is there at
 * most once and of its kind exactly: true and false for booleans, whole numbers in range for integers, any number for
 * floating point, text for text. null and a missing member are taken where the field allows it. Members that the type
 * doesn't name are checked and left out. The first row of any other make ends the work, and its index is the answer.
 *
 * The texts must be valid UTF-8. Nothing is read beyond a row's end, and nothing is allocated.
 */
#define _GNU_SOURCE
#include "json_parse.h"

/* Text may be written so far beyond its end: it is copied eight bytes at a time. */
#define TEXT_SLACK 8
#define DAY_MS 86400000

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
    cursor_t text;
    wherry_field_t *fields;
    int32_t row;
} reading_t;

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

static int object(reading_t *reading, wherry_field_t *field, int depth);

static int put_number(reading_t *reading, wherry_field_t *field) {
    cursor_t *cursor = &reading->text;
    number_t found;
    int64_t integer;
    double real;
    int32_t row = reading->row;
    if (!number(cursor, &found) || cursor->at >= cursor->end)
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
static int value(reading_t *reading, wherry_field_t *field, int depth) {
    cursor_t *cursor = &reading->text;
    skip_blanks(cursor);
    if (cursor->at >= cursor->end)
        return 0;
    uint8_t first = *cursor->at;
    if (first == 'n') {
        if (!field->null_allowed || !word(cursor, "null", 4))
            return 0;
        put_null(reading->fields, field, reading->row);
        return 1;
    }
    switch (field->kind) {
    case KIND_STRUCT:
        return first == '{' && object(reading, field, depth + 1);
    case KIND_BOOL:
        if (first == 't' && word(cursor, "true", 4)) {
            ((uint8_t *)field->values)[reading->row / 8] |= (uint8_t)(1u << (reading->row % 8));
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
        ((int32_t *)field->values)[reading->row + 1] = (int32_t)field->text_size;
        return 1;
    }
    default:
        return put_number(reading, field);
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

static int members(reading_t *reading, wherry_field_t *children, int32_t count, int depth) {
    cursor_t *cursor = &reading->text;
    int32_t guess = 0, seen = 0, mark = reading->row + 1;
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
            if (!skip_text(cursor, &escaped) || escaped || cursor->at - name > NAME_BYTES_MAX)
                return -1;
            child = named(children, count, guess, name, cursor->at - 1 - name);
        }
        skip_blanks(cursor);
        if (!next_is(cursor, ':'))
            return -1;
        if (child) {
            /* Of a member given twice the last would count. */
            if (child->seen == mark || !value(reading, child, depth))
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

static int object(reading_t *reading, wherry_field_t *field, int depth) {
    cursor_t *cursor = &reading->text;
    wherry_field_t *children = reading->fields + field->first_child;
    int32_t seen = 0;
    if (depth >= DEPTH_MAX || !next_is(cursor, '{'))
        return 0;
    skip_blanks(cursor);
    if (!next_is(cursor, '}')) {
        seen = members(reading, children, field->children, depth);
        if (seen < 0)
            return 0;
    }
    for (int32_t i = 0; seen < field->children && i < field->children; i++) {
        if (children[i].seen == reading->row + 1)
            continue;
        if (!children[i].null_allowed)
            return 0;
        put_null(reading->fields, &children[i], reading->row);
    }
    return 1;
}

static inline int is_null(const uint8_t *validity, int64_t bit) {
    return validity && !(validity[bit / 8] >> (bit % 8) & 1);
}

/* Reads rows into the buffers of the fields; returns how many were read: fewer than there are ends at an odd row.
 *
 * head and tail are bytes to leave out at both ends of every row that isn't null. Text buffers need room for all bytes of
 * the rows and TEXT_SLACK more; offsets of text are one more than the rows.
 */
EXPORT int32_t wherry_json_read(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                                int64_t validity_offset, int32_t rows, int32_t head, int32_t tail,
                                wherry_field_t *fields, int32_t fields_count) {
    reading_t reading = {{NULL, NULL}, fields, 0};
    cursor_t *cursor = &reading.text;
    for (int32_t i = 0; i < fields_count; i++)
        if (fields[i].kind == KIND_TEXT)
            ((int32_t *)fields[i].values)[0] = 0;
    for (int32_t row = 0; row < rows; row++) {
        reading.row = row;
        if (is_null(validity, validity_offset + row)) {
            put_null(fields, fields, row);
            continue;
        }
        cursor->at = data + offsets[row] + head;
        cursor->end = data + offsets[row + 1] - tail;
        if (cursor->at >= cursor->end || cursor->end - cursor->at > TEXT_BYTES_MAX)
            return row;
        skip_blanks(cursor);
        if (!object(&reading, fields, 0))
            return row;
        skip_blanks(cursor);
        if (cursor->at != cursor->end)
            return row;
    }
    return rows;
}

/* Returns how many rows, from the first on, are null or one sound JSON value each, other than the word null. */
EXPORT int32_t wherry_json_check(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                                 int64_t validity_offset, int32_t rows) {
    cursor_t cursor = {NULL, NULL};
    for (int32_t row = 0; row < rows; row++) {
        if (is_null(validity, validity_offset + row))
            continue;
        cursor.at = data + offsets[row];
        cursor.end = data + offsets[row + 1];
        if (cursor.end - cursor.at > TEXT_BYTES_MAX)
            return row;
        skip_blanks(&cursor);
        if (cursor.at >= cursor.end || *cursor.at == 'n' || !skip_value(&cursor, 0))
            return row;
        skip_blanks(&cursor);
        if (cursor.at != cursor.end)
            return row;
    }
    return rows;
}
