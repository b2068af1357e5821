/* Data whose every byte depends on who sent it, to whom, how much, where and in which iteration. So a message
 * that is stale, shifted, cut or delivered to the wrong rank cannot look right. It is not cryptographic. */
#ifndef CAUSEWAY_TEST_PATTERN_H
#define CAUSEWAY_TEST_PATTERN_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline uint64_t pattern_seed(uint64_t from, uint64_t to, uint64_t size, uint64_t iteration)
{
    uint64_t seed = 0x243F6A8885A308D3u;
    const uint64_t parts[4] = {from, to, size, iteration};
    for (int i = 0; i < 4; i++) {
        seed = (seed ^ parts[i]) * 0x9E3779B97F4A7C15u;
        seed ^= seed >> 29;
    }
    return seed;
}

static inline uint64_t pattern_word(uint64_t seed, uint64_t index)
{
    uint64_t word = (seed + index) * 0xD6E8FEB86659FD93u;
    return word ^ (word >> 32);
}

static inline void pattern_fill(unsigned char *data, size_t size, uint64_t seed)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = pattern_word(seed, at / 8);
        memcpy(data + at, &word, size - at < 8 ? size - at : 8);
    }
}

/* Returns 0, or 1 after one line on stderr that says which byte is wrong and what it should be. */
static inline int pattern_check(const unsigned char *data, size_t size, uint64_t seed, const char *what,
                                int rank, int from)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = pattern_word(seed, at / 8);
        size_t length = size - at < 8 ? size - at : 8;
        if (memcmp(data + at, &word, length) != 0) {
            const unsigned char *expected = (const unsigned char *)&word;
            size_t off = 0;
            while (data[at + off] == expected[off])
                off++;
            fprintf(stderr, "%s: rank %d: byte %zu of %zu from rank %d is %02x, expected %02x\n", what, rank,
                    at + off, size, from, data[at + off], expected[off]);
            return 1;
        }
    }
    return 0;
}

#endif
