/* The two forms in which processors of 64 bits keep a long double of 16 bytes. Pure. */
#ifndef CAUSEWAY_LONG_DOUBLE_H
#define CAUSEWAY_LONG_DOUBLE_H

enum { LONG_DOUBLE_BYTES = 16 };

/* The form of x86-64 has 80 bits: 64 of the significand, the first of which stands before the point, and 16
 * of sign and exponent. That of arm64 is IEEE 754's binary128, with 112 bits behind the point. Exponents are
 * the same. */
enum long_double_form { LONG_DOUBLE_X87 = 1, LONG_DOUBLE_QUAD = 2 };

/* Convert one number in its place. The first is exact, but for what no x87 makes (it becomes no number). The
 * second rounds to the nearest, and of two to the even one, as the processor does. */
void long_double_to_quad(unsigned char number[LONG_DOUBLE_BYTES]);
void long_double_to_x87(unsigned char number[LONG_DOUBLE_BYTES]);

#endif
