/* The first bytes of a stream, in each direction; see streams.h. */
#ifndef CAUSEWAY_WORLD_STREAMS_HELLO_H
#define CAUSEWAY_WORLD_STREAMS_HELLO_H

#include <stdint.h>

/* Since version 2, hidden messages have the tags of slots (world/handles/slots.h). */
enum { HELLO_VERSION = 3, HELLO_BYTES = 1 + 8 + 4 + 4 };

struct hello {
    uint8_t version;
    uint64_t world;
    uint32_t from, to;
};

static inline void hello_put(unsigned char *bytes, uint64_t number, int n)
{
    for (int i = 0; i < n; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
}

static inline uint64_t hello_get(const unsigned char *bytes, int n)
{
    uint64_t number = 0;
    for (int i = n; i > 0; i--)
        number = number << 8 | bytes[i - 1];
    return number;
}

static inline void hello_encode(const struct hello *hello, unsigned char bytes[HELLO_BYTES])
{
    bytes[0] = hello->version;
    hello_put(bytes + 1, hello->world, 8);
    hello_put(bytes + 9, hello->from, 4);
    hello_put(bytes + 13, hello->to, 4);
}

static inline struct hello hello_decode(const unsigned char bytes[HELLO_BYTES])
{
    return (struct hello){bytes[0], hello_get(bytes + 1, 8), (uint32_t)hello_get(bytes + 9, 4),
                          (uint32_t)hello_get(bytes + 13, 4)};
}

#endif
