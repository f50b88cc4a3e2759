/* What prints single values as Jackson and Java do; defined in json_write.c. */
#ifndef WHERRY_JSON_PUT_H
#define WHERRY_JSON_PUT_H

#include <stdint.h>

/* Prints a double; NULL for one that others have to print. The locale of the thread has to be C's. */
uint8_t *wherry_put_real(uint8_t *to, double number);

/* Escapes the quote, backslash, control character or character beyond the basic plane at a place, and passes it. */
uint8_t *wherry_put_special(uint8_t *to, const uint8_t **at);

#endif
