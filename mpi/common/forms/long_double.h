/* The two forms in which 64-bit processors store a long double of 16 bytes. Pure functions. */
#ifndef CAUSEWAY_LONG_DOUBLE_H
#define CAUSEWAY_LONG_DOUBLE_H

enum { LONG_DOUBLE_BYTES = 16 };

/* The form of x86-64 has 80 bits: 64 of significand, including an explicit integer bit, and 16 of sign and
 * exponent. That of arm64 is IEEE 754's binary128, with 112 fraction bits. Exponents are the same. */
enum long_double_form { LONG_DOUBLE_X87 = 1, LONG_DOUBLE_QUAD = 2 };

/* Convert one number in place. The first is exact, except for encodings that no x87 produces, which become
 * NaN. The second rounds to nearest, ties to even, as the processor does. */
void long_double_to_quad(unsigned char number[LONG_DOUBLE_BYTES]);
void long_double_to_x87(unsigned char number[LONG_DOUBLE_BYTES]);

#endif
