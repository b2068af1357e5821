#include "common/forms/long_double.h"

#include <stdint.h>

typedef unsigned __int128 wide;

/* The fraction bits of each form, and how many more of them one has. */
enum { QUAD_BITS = 112, X87_BITS = 63, MORE_BITS = QUAD_BITS - X87_BITS };
enum { EXPONENT = 0x7fff };
#define INTEGER (UINT64_C(1) << X87_BITS)

/* Both forms are little-endian. */
static wide get(const unsigned char *at, int bytes)
{
    wide number = 0;
    for (int i = bytes; i > 0; i--)
        number = number << 8 | at[i - 1];
    return number;
}

static void put(unsigned char *at, wide number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

void long_double_to_quad(unsigned char number[LONG_DOUBLE_BYTES])
{
    uint64_t significand = (uint64_t)get(number, 8);
    unsigned sign = number[9] & 0x80, exponent = (unsigned)get(number + 8, 2) & EXPONENT;
    int is_whole = (significand & INTEGER) != 0;
    wide fraction = (wide)(significand & ~INTEGER) << MORE_BITS;
    /* The processor treats an encoding without the integer bit as invalid, so it becomes a NaN. */
    if ((exponent != 0 && !is_whole) || (exponent == EXPONENT && fraction != 0)) {
        exponent = EXPONENT;
        fraction |= (wide)1 << (QUAD_BITS - 1);
    }
    /* A denormal encoding may have the integer bit set (pseudo-denormal). */
    if (exponent == 0 && is_whole)
        exponent = 1;
    put(number, fraction, 14);
    put(number + 14, sign << 8 | exponent, 2);
}

void long_double_to_x87(unsigned char number[LONG_DOUBLE_BYTES])
{
    wide fraction = get(number, 14);
    unsigned sign = number[15] & 0x80, exponent = (unsigned)get(number + 14, 2) & EXPONENT;
    uint64_t significand = (uint64_t)(fraction >> MORE_BITS);
    if (exponent == EXPONENT) {
        significand |= INTEGER;
        if (fraction != 0)
            significand |= INTEGER >> 1;
    } else {
        const wide half = (wide)1 << (MORE_BITS - 1), rest = fraction & (2 * half - 1);
        if (rest > half || (rest == half && significand & 1))
            significand++;
        /* Rounding carried into the next power of two, or from the denormal numbers to the first normal
         * one. */
        exponent += significand == INTEGER;
        significand |= exponent != 0 ? INTEGER : 0;
    }
    put(number, significand, 8);
    put(number + 8, sign << 8 | exponent, 8);
}
