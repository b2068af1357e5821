/* long_double CASES: numbers from one processor's long double to another's and back, random ones and those at
 * the edges of each form. On x86-64 each is compared with what the compiler's own conversions give. */
#include "common/forms/long_double.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void fail(const char *what, const unsigned char *from, const unsigned char *to)
{
    fprintf(stderr, "long_double: %s: ", what);
    for (int i = LONG_DOUBLE_BYTES; i > 0; i--)
        fprintf(stderr, "%02x", from[i - 1]);
    fprintf(stderr, " became ");
    for (int i = LONG_DOUBLE_BYTES; i > 0; i--)
        fprintf(stderr, "%02x", to[i - 1]);
    fprintf(stderr, "\n");
    exit(1);
}

/* Exponents near the edges come as often as all others. */
static unsigned exponent(void)
{
    static const unsigned edges[] = {0, 1, 2, 0x3fff, 0x7ffd, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};
    return draw() % 2 ? edges[draw() % (sizeof edges / sizeof *edges)] : (unsigned)(draw() & 0xffff);
}

/* Bits that are all the same are where carries go far. */
static uint64_t bits(void)
{
    uint64_t some = draw();
    return draw() % 3 ? some : some & 1 ? UINT64_MAX << (some >> 58) : (some & 2) - 1;
}

static void put(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

/* A number that a processor makes: the bit before the point is missing in the smallest alone. */
static void draw_x87(unsigned char number[LONG_DOUBLE_BYTES])
{
    uint64_t significand = bits();
    unsigned both = exponent();
    significand = both & 0x7fff ? significand | 1ull << 63 : significand & ~(1ull << 63);
    /* No number is told from another. */
    if ((both & 0x7fff) == 0x7fff && significand << 1)
        significand |= 3ull << 62;
    put(number, significand, 8);
    put(number + 8, both, 8);
}

static void draw_quad(unsigned char number[LONG_DOUBLE_BYTES])
{
    put(number, draw() % 2 ? bits() : draw() % 2 ? 1ull << 48 : 1ull << 48 | (bits() & 3) << 49, 8);
    put(number + 8, bits(), 6);
    put(number + 14, exponent(), 2);
}

#if __LDBL_MANT_DIG__ == 64
static void compare(const unsigned char *from, const unsigned char *to, int is_to_quad)
{
    long double x87;
    __float128 quad;
    memcpy(&x87, is_to_quad ? from : to, sizeof x87);
    memcpy(&quad, is_to_quad ? to : from, sizeof quad);
    int is_same;
    if (is_to_quad) {
        __float128 wanted = x87;
        is_same = quad != quad ? wanted != wanted : memcmp(&wanted, &quad, sizeof wanted) == 0;
    } else {
        long double wanted = (long double)quad;
        is_same = x87 != x87 ? wanted != wanted : memcmp(&wanted, &x87, 10) == 0;
    }
    if (!is_same)
        fail(is_to_quad ? "the compiler gives another quad" : "the compiler gives another x87", from, to);
}
#else
static void compare(const unsigned char *from, const unsigned char *to, int is_to_quad)
{
    (void)from, (void)to, (void)is_to_quad;
}
#endif

static void try_x87(const unsigned char from[LONG_DOUBLE_BYTES])
{
    unsigned char quad[LONG_DOUBLE_BYTES], again[LONG_DOUBLE_BYTES];
    memcpy(quad, from, sizeof quad);
    long_double_to_quad(quad);
    compare(from, quad, 1);
    memcpy(again, quad, sizeof again);
    long_double_to_x87(again);
    if (memcmp(from, again, sizeof again))
        fail("there and back", from, again);
}

static void try_quad(const unsigned char from[LONG_DOUBLE_BYTES])
{
    unsigned char x87[LONG_DOUBLE_BYTES];
    memcpy(x87, from, sizeof x87);
    long_double_to_x87(x87);
    compare(from, x87, 0);
    for (int i = 10; i < LONG_DOUBLE_BYTES; i++)
        if (x87[i])
            fail("bytes that are no part of the number are not zero", from, x87);
}

/* No processor makes these; they must become no number. */
static void try_unnormal(void)
{
    unsigned char number[LONG_DOUBLE_BYTES] = {0}, quad[LONG_DOUBLE_BYTES];
    put(number, draw() >> 1, 8);
    put(number + 8, draw() % 0x7fff + 1, 2);
    memcpy(quad, number, sizeof quad);
    long_double_to_quad(quad);
    if (quad[15] != 0x7f || quad[14] != 0xff || !(quad[13] & 0x80))
        fail("an unnormal number", number, quad);
}

int main(int argc, char **argv)
{
    long cases = argc > 1 ? atol(argv[1]) : 1000000;
    unsigned char number[LONG_DOUBLE_BYTES];
    /* 1, as arm64 and x86-64 have it. */
    const unsigned char one_x87[] = {0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f, 0, 0, 0, 0, 0, 0};
    const unsigned char one_quad[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x3f};
    memcpy(number, one_x87, sizeof number);
    long_double_to_quad(number);
    if (memcmp(number, one_quad, sizeof number))
        fail("one", one_x87, number);
    for (long i = 0; i < cases; i++) {
        draw_x87(number);
        try_x87(number);
        draw_quad(number);
        try_quad(number);
        try_unnormal();
    }
    printf("long_double: %ld numbers of each form: all right\n", cases);
    return 0;
}
