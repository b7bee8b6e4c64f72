#include "board.h"

#define COLOUR 0xc0dec0deU
/* Words below the caller's frame that stay unpainted: the painting function's own frame lies there. */
#define OWN 16

int main(void);
void p64_panic(void);
_Noreturn void reset(void);

/* From the linker script. */
extern uint32_t bss_begin[], bss_end[], stack_end[], stack_top[];

static _Noreturn void fault(void) {
    console_text("fault\n");
    board_exit(1);
}

/* The processor loads its stack pointer from the first word and begins at the second. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)stack_top, (uintptr_t)reset, (uintptr_t)fault, (uintptr_t)fault,
    (uintptr_t)fault,     (uintptr_t)fault, (uintptr_t)fault,
};

_Noreturn void reset(void) {
    /* Coprocessors 10 and 11 are the floating-point unit; it is off after a reset. */
    *(volatile uint32_t *)0xe000ed88U |= 0xfU << 20;
    __asm volatile("dsb\n isb" ::: "memory");
    for (volatile uint32_t *word = bss_begin; word < bss_end; ++word) {
        *word = 0;
    }
    board_exit((uint32_t)main());
}

/* What the library calls should it ever have a defect. */
void p64_panic(void) {
    console_text("panic\n");
    board_exit(1);
}

static uint32_t semihosting(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

_Noreturn void board_exit(uint32_t code) {
    const uint32_t reason[2] = {0x20026, code}; /* the program ended by itself, with this code */
    semihosting(0x20, reason);
    for (;;) {
    }
}

void console_bytes(const char *bytes, size_t len) {
    for (size_t at = 0; at < len; ++at) {
        semihosting(0x03, &bytes[at]);
    }
}

void console_text(const char *text) {
    semihosting(0x04, text);
}

void console_number(uint32_t number) {
    char digits[11];
    char *at = &digits[10];
    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    console_text(at);
}

void console_hex(uint32_t number) {
    char digits[9] = {0};
    for (int at = 0; at < 8; ++at) {
        digits[at] = "0123456789abcdef"[number >> (28 - 4 * at) & 15];
    }
    console_text(digits);
}

void console_line(const char *name, uint32_t value) {
    console_text(name);
    console_text(" ");
    console_number(value);
    console_text("\n");
}

static volatile uint32_t *painted_top;

__attribute__((noinline)) void stack_paint(void) {
    uint32_t *top;
    __asm volatile("mov %0, sp" : "=r"(top));
    painted_top = top;
    for (volatile uint32_t *word = stack_end; word < top - OWN; ++word) {
        *word = COLOUR;
    }
}

__attribute__((noinline)) uint32_t stack_used(void) {
    volatile uint32_t *word = stack_end;
    while (word < painted_top && *word == COLOUR) {
        ++word;
    }
    return (uint32_t)((uintptr_t)painted_top - (uintptr_t)word);
}
