/* The frames of a stream between two processes, as bytes: little-endian whatever the CPU. A frame is a head,
 * whose first byte tells its fixed size, followed by data in two kinds of frames. HELLO, which comes before
 * all others, belongs to streams/. */
#ifndef CAUSEWAY_WORLD_FRAMES_H
#define CAUSEWAY_WORLD_FRAMES_H

#include <stddef.h>
#include <stdint.h>

enum frame_kind {
    /* A message begins: has everything that matching needs, and all of its data or none. Costs one head of
     * the credit. */
    FRAME_HEAD = 2,
    /* Data of a message whose HEAD has been sent. */
    FRAME_DATA = 3,
    /* The sender gets this much more credit, in counted bytes and in messages without a receive. */
    FRAME_CREDIT = 4,
    /* A receive has matched the message: the rest may be sent without credit. */
    FRAME_GRANT = 5,
    /* A receive has matched a synchronous message: its send may complete. */
    FRAME_MATCHED = 6,
    /* Nothing more follows. */
    FRAME_BYE = 7,
};

enum { FRAME_SYNC = 1 };

/* Tests of credit and turns use sizes that are 1024 times smaller, so that a case takes microseconds. */
#ifdef CAUSEWAY_SMALL_SIZES
enum { FRAME_KIB = 1 };
#else
enum { FRAME_KIB = 1 << 10 };
#endif

enum {
    /* The longest head. */
    FRAME_MOST_HEAD = 34,
    /* Up to this size a message's data is in its HEAD: a single write, for which others do not wait long. */
    FRAME_MOST_INLINE = 64 * FRAME_KIB,
    /* The limit of one DATA frame: DATA of several messages take turns, so that none waits for all of
     * another. */
    FRAME_MOST_DATA = 256 * FRAME_KIB,
};

/* The limit of a message's length, so that sums of lengths stay far from overflow. */
#define FRAME_MOST_BYTES (UINT64_C(1) << 60)

struct frame {
    uint8_t kind;
    /* FRAME_SYNC or 0, in a HEAD. */
    uint8_t flags;
    /* Whether the DATA is paid for with credit. Data in a HEAD always is. */
    uint8_t counted;
    /* The number that its sender gave the message. */
    uint32_t id;
    uint64_t context;
    uint32_t source;
    int32_t tag;
    /* A message's length, or credit in bytes. */
    uint64_t bytes;
    /* Credit in heads. */
    uint32_t heads;
    /* How many bytes of data follow this head. */
    uint32_t data;
};

/* Returns the size of a head from its first byte; 0 if there is no such frame. */
size_t frame_head_bytes(uint8_t kind);

/* Writes a head to `to`, which has room for FRAME_MOST_HEAD; returns its size. */
size_t frame_encode(const struct frame *frame, unsigned char *to);

/* Reads a whole head. Returns NULL, or what is wrong with it. */
const char *frame_decode(struct frame *frame, const unsigned char *from);

#endif
