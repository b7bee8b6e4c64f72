/* What the example needs from its machine: a console and an exit code by semihosting, a painted stack. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

void console_bytes(const char *bytes, size_t len);
void console_text(const char *text);
void console_number(uint32_t number);
void console_hex(uint32_t number);
/* `name value` and the end of the line: the form that the scripts read. */
void console_line(const char *name, uint32_t value);

/* Paints the stack from its end up to the caller's frame, and remembers where that is. */
void stack_paint(void);
/* Most bytes of stack used below that frame since. */
uint32_t stack_used(void);

/* Ends the program with that exit code. */
_Noreturn void board_exit(uint32_t code);

#endif
