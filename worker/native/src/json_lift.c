/* JSON objects of members known by name into Arrow columns, where a column says all that the texts say.
 *
 * Which members there are is guessed beforehand. A row is taken when its members are among them and in their order, be
 * it that some are missing, and each is null or of its member's kind, written so that the same would be written again:
 * whole numbers of at most 18 digits, fractions without an exponent. A member of no single kind is kept as text: JSON
 * without blanks, as Jackson writes it. Rows of any other make are left out, and told.
 *
 * Missing and null are two things: `there` tells which objects have a member, `validity` where it is not null.
 */
#define _GNU_SOURCE
#include "json_parse.h"
#include "json_put.h"

/* Whole numbers below it have 18 digits at most, and fit. */
#define WHOLE_END 1000000000000000000ULL
/* More digits before the point are for the exact rules. */
#define WHOLE_DIGITS_MAX 16
/* Of values kept as text: objects and lists within each other, members of one object. */
#define RAW_DEPTH_MAX 16
#define RAW_MEMBERS_MAX 64

enum { KIND_BOOL, KIND_INT64, KIND_DOUBLE, KIND_TEXT, KIND_RAW };

/* A member, and the buffers its rows go into. */
typedef struct {
    int32_t kind;
    int32_t name_size;
    const char *name;
    uint8_t *there;    /* bits, all clear */
    uint8_t *validity; /* bits, all clear */
    void *values;      /* bits of booleans, all clear; offsets of text */
    uint8_t *text;
    int64_t text_size;
} wherry_member_t;

static uint8_t *put_raw(cursor_t *cursor, uint8_t *to, int depth);

static inline void set_bit(uint8_t *bits, int32_t row) { bits[row / 8] |= (uint8_t)(1u << (row % 8)); }

static inline void clear_bit(uint8_t *bits, int32_t row) { bits[row / 8] &= (uint8_t)~(1u << (row % 8)); }

/* Whether a number would be written again as it stands there. */
static int is_plain(const number_t *found) {
    if (found->negative && !found->digits && found->exact)
        return 0;
    if (found->whole)
        return found->exact && found->digits < WHOLE_END;
    return !found->powered && found->before <= WHOLE_DIGITS_MAX;
}

/* Copies a text behind its opening quote as Jackson writes it, with both quotes. */
static uint8_t *put_raw_text(cursor_t *cursor, uint8_t *to) {
    uint8_t meant[8];
    *to++ = '"';
    for (;;) {
        while (cursor->at < cursor->end && *cursor->at != '"' && *cursor->at != '\\' && *cursor->at >= 0x20 &&
               *cursor->at < 0xF0)
            *to++ = *cursor->at++;
        if (cursor->at >= cursor->end || *cursor->at < 0x20)
            return NULL;
        if (*cursor->at == '"') {
            cursor->at++;
            *to++ = '"';
            return to;
        }
        const uint8_t *from = cursor->at;
        if (*from == '\\') {
            cursor->at++;
            uint8_t *end = escape(cursor, meant);
            if (!end)
                return NULL;
            if (*meant >= 0x20 && *meant < 0xF0 && *meant != '"' && *meant != '\\') {
                memcpy(to, meant, (size_t)(end - meant));
                to += end - meant;
                continue;
            }
            from = meant;
            to = wherry_put_special(to, &from);
        } else {
            if (cursor->end - cursor->at < 4)
                return NULL;
            to = wherry_put_special(to, &cursor->at);
        }
    }
}

static uint8_t *put_raw_number(cursor_t *cursor, uint8_t *to) {
    number_t found;
    double real;
    if (!number(cursor, &found) || cursor->at >= cursor->end || !is_plain(&found))
        return NULL;
    if (!found.whole)
        return nearest(&found, &real) ? wherry_put_real(to, real) : NULL;
    memcpy(to, found.begin, (size_t)(cursor->at - found.begin));
    return to + (cursor->at - found.begin);
}

/* Copies a name with its quotes; NULL for one with escapes, or beyond the basic plane. */
static uint8_t *put_raw_name(cursor_t *cursor, uint8_t *to) {
    *to++ = '"';
    while (cursor->at < cursor->end && *cursor->at != '"') {
        if (*cursor->at == '\\' || *cursor->at < 0x20 || *cursor->at >= 0xF0)
            return NULL;
        *to++ = *cursor->at++;
    }
    if (!next_is(cursor, '"'))
        return NULL;
    *to++ = '"';
    return to;
}

static uint8_t *put_raw_object(cursor_t *cursor, uint8_t *to, int depth) {
    const uint8_t *names[RAW_MEMBERS_MAX];
    int64_t sizes[RAW_MEMBERS_MAX];
    *to++ = '{';
    skip_blanks(cursor);
    if (next_is(cursor, '}')) {
        *to++ = '}';
        return to;
    }
    for (int count = 0; count < RAW_MEMBERS_MAX; count++) {
        if (!next_is(cursor, '"'))
            return NULL;
        names[count] = cursor->at;
        to = put_raw_name(cursor, to);
        if (!to)
            return NULL;
        sizes[count] = cursor->at - names[count];
        /* Of a member given twice the last would count. */
        for (int i = 0; i < count; i++)
            if (sizes[i] == sizes[count] && memcmp(names[i], names[count], (size_t)sizes[i]) == 0)
                return NULL;
        skip_blanks(cursor);
        if (!next_is(cursor, ':'))
            return NULL;
        *to++ = ':';
        to = put_raw(cursor, to, depth);
        if (!to)
            return NULL;
        skip_blanks(cursor);
        if (next_is(cursor, '}')) {
            *to++ = '}';
            return to;
        }
        if (!next_is(cursor, ','))
            return NULL;
        *to++ = ',';
        skip_blanks(cursor);
    }
    return NULL;
}

static uint8_t *put_raw_list(cursor_t *cursor, uint8_t *to, int depth) {
    *to++ = '[';
    skip_blanks(cursor);
    if (next_is(cursor, ']')) {
        *to++ = ']';
        return to;
    }
    for (;;) {
        to = put_raw(cursor, to, depth);
        if (!to)
            return NULL;
        skip_blanks(cursor);
        if (next_is(cursor, ']')) {
            *to++ = ']';
            return to;
        }
        if (!next_is(cursor, ','))
            return NULL;
        *to++ = ',';
    }
}

static uint8_t *put_raw_word(cursor_t *cursor, uint8_t *to, const char *text, size_t size) {
    if (!word(cursor, text, size))
        return NULL;
    memcpy(to, text, size);
    return to + size;
}

/* Copies any value as it would be written again. */
static uint8_t *put_raw(cursor_t *cursor, uint8_t *to, int depth) {
    skip_blanks(cursor);
    if (cursor->at >= cursor->end || depth >= RAW_DEPTH_MAX)
        return NULL;
    switch (*cursor->at) {
    case '{':
        cursor->at++;
        return put_raw_object(cursor, to, depth + 1);
    case '[':
        cursor->at++;
        return put_raw_list(cursor, to, depth + 1);
    case '"':
        cursor->at++;
        return put_raw_text(cursor, to);
    case 't':
        return put_raw_word(cursor, to, "true", 4);
    case 'f':
        return put_raw_word(cursor, to, "false", 5);
    case 'n':
        return put_raw_word(cursor, to, "null", 4);
    default:
        return put_raw_number(cursor, to);
    }
}

/* Sets what stands where a member is missing or null, or what stood there of a row that is left out. */
static void put_nothing(wherry_member_t *member, int32_t row) {
    switch (member->kind) {
    case KIND_BOOL:
        clear_bit(member->values, row);
        break;
    case KIND_INT64:
        ((int64_t *)member->values)[row] = 0;
        break;
    case KIND_DOUBLE:
        ((double *)member->values)[row] = 0;
        break;
    default:
        member->text_size = ((int32_t *)member->values)[row];
        ((int32_t *)member->values)[row + 1] = (int32_t)member->text_size;
    }
}

static int put_number(cursor_t *cursor, wherry_member_t *member, int32_t row) {
    number_t found;
    if (!number(cursor, &found) || cursor->at >= cursor->end || !is_plain(&found) ||
        found.whole != (member->kind == KIND_INT64))
        return 0;
    if (!found.whole)
        return nearest(&found, (double *)member->values + row);
    ((int64_t *)member->values)[row] = found.negative ? -(int64_t)found.digits : (int64_t)found.digits;
    return 1;
}

static int put_value(cursor_t *cursor, wherry_member_t *member, int32_t row) {
    uint8_t *end;
    if (cursor->at >= cursor->end)
        return 0;
    if (*cursor->at == 'n') {
        put_nothing(member, row);
        return word(cursor, "null", 4);
    }
    set_bit(member->validity, row);
    switch (member->kind) {
    case KIND_BOOL:
        if (word(cursor, "true", 4)) {
            set_bit(member->values, row);
            return 1;
        }
        return word(cursor, "false", 5);
    case KIND_TEXT:
        end = next_is(cursor, '"') ? text(cursor, member->text + member->text_size) : NULL;
        break;
    case KIND_RAW:
        end = put_raw(cursor, member->text + member->text_size, 0);
        break;
    default:
        return put_number(cursor, member, row);
    }
    if (!end)
        return 0;
    member->text_size = end - member->text;
    ((int32_t *)member->values)[row + 1] = (int32_t)member->text_size;
    return 1;
}

static inline int is_named(const cursor_t *cursor, const wherry_member_t *member) {
    return cursor->end - cursor->at > member->name_size && cursor->at[member->name_size] == '"' &&
           memcmp(cursor->at, member->name, (size_t)member->name_size) == 0;
}

static int lift_row(cursor_t *cursor, wherry_member_t *members, int32_t count, int32_t row) {
    int32_t next = 0;
    skip_blanks(cursor);
    if (!next_is(cursor, '{'))
        return 0;
    skip_blanks(cursor);
    int more = !next_is(cursor, '}');
    while (more) {
        if (!next_is(cursor, '"'))
            return 0;
        while (next < count && !is_named(cursor, &members[next]))
            put_nothing(&members[next++], row);
        if (next == count)
            return 0;
        wherry_member_t *member = &members[next++];
        cursor->at += member->name_size + 1;
        skip_blanks(cursor);
        if (!next_is(cursor, ':'))
            return 0;
        skip_blanks(cursor);
        set_bit(member->there, row);
        if (!put_value(cursor, member, row))
            return 0;
        skip_blanks(cursor);
        more = !next_is(cursor, '}');
        if (more && !next_is(cursor, ','))
            return 0;
        if (more)
            skip_blanks(cursor);
    }
    while (next < count)
        put_nothing(&members[next++], row);
    skip_blanks(cursor);
    return cursor->at == cursor->end;
}

/* Takes rows into the buffers of the members; returns how many, and 1 for each of them in `taken`, else 0.
 *
 * Buffers of texts need room for all bytes of the rows and RAW_GROWTH times as much for those of no single kind, each
 * with TEXT_SLACK more (see the Python side); offsets are one more than the rows.
 */
EXPORT int32_t wherry_json_lift(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                                int64_t validity_offset, int32_t rows, wherry_member_t *members, int32_t count,
                                uint8_t *taken) {
    int32_t all = 0;
    locale_t before;
    if (!wherry_enter_c(&before))
        return -1;
    for (int32_t i = 0; i < count; i++)
        if (members[i].kind >= KIND_TEXT)
            ((int32_t *)members[i].values)[0] = 0;
    for (int32_t row = 0; row < rows; row++) {
        cursor_t cursor = {data + offsets[row], data + offsets[row + 1]};
        int64_t bit = validity_offset + row;
        int null = validity && !(validity[bit / 8] >> (bit % 8) & 1);
        taken[row] = (uint8_t)(!null && lift_row(&cursor, members, count, row));
        all += taken[row];
        if (taken[row])
            continue;
        for (int32_t i = 0; i < count; i++) {
            put_nothing(&members[i], row);
            clear_bit(members[i].there, row);
            clear_bit(members[i].validity, row);
        }
    }
    uselocale(before);
    return all;
}
