/* What prints single values as Jackson and Java do; defined in json_write.c. */
#ifndef WHERRY_JSON_PUT_H
#define WHERRY_JSON_PUT_H

#include <locale.h>
#include <stdint.h>

/* Gives the thread the locale C, and `before` the one to go back to with uselocale; 0 where that can't be. */
int wherry_enter_c(locale_t *before);

/* Prints a double; NULL for one that others have to print. Only between wherry_enter_c and uselocale. */
uint8_t *wherry_put_real(uint8_t *to, double number);

/* Escapes the quote, backslash, control character or character beyond the basic plane at a place, and passes it. */
uint8_t *wherry_put_special(uint8_t *to, const uint8_t **at);

#endif
