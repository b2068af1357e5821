/* A seeded generator (splitmix64): the same numbers at every rank, on every machine. */
#ifndef CAUSEWAY_DATA_RANDOM_H
#define CAUSEWAY_DATA_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

static inline uint64_t random_next(struct random *random)
{
    return random_mix(random->state += 0x9E3779B97F4A7C15u);
}

/* Returns 0 to limit - 1. */
static inline int random_below(struct random *random, int limit)
{
    return (int)(random_next(random) % (uint64_t)limit);
}

/* Returns one of the divisors of a number, all with the same probability. */
static inline int random_divisor(struct random *random, int of)
{
    int found[128] = {1}, count = 0;
    for (int divisor = 1; divisor <= of && count < 128; divisor++)
        if (of % divisor == 0)
            found[count++] = divisor;
    return found[random_below(random, count)];
}

#endif
