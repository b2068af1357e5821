/* What the program wants of the engine: a receive or a send, and the channel that it is on. */
#ifndef CAUSEWAY_WORLD_OPERATION_H
#define CAUSEWAY_WORLD_OPERATION_H

#include <stddef.h>
#include <stdint.h>

/* Any source, or any tag. No MPI's constant: theirs differ. */
enum { ANY = -1 };

/* A communicator, or the hidden half of one, as messages know it. */
struct channel {
    uint64_t context;
    /* The world number of each rank; the owner's memory. */
    const int32_t *numbers;
    uint32_t size;
    /* The engine hands it on to who asks. */
    void *owner;

    /* In the order of posting. Invariant: no message in `arrived` matches a receive in `posted`. */
    struct operation *posted, **posted_end;
    /* In the order of arrival, whether or not all of a message is there. */
    struct message *arrived, **arrived_end;
    /* How many in `posted` the site's own MPI may match too. While there are any, the channel is listed. */
    uint32_t may_be_native;
    int is_listed;
    struct channel *next_listed;
};

enum operation_state {
    /* A receive waits for its message; a send's bytes are still the program's. */
    OPERATION_WAITS,
    /* A receive has its message, of which not all has come. */
    OPERATION_MATCHED,
    OPERATION_DONE,
};

struct operation {
    /* In `posted`, later among those that are done. */
    struct operation *next;
    struct channel *channel;
    enum operation_state state;
    uint8_t is_send, is_sync, is_cancelled, is_truncated, has_no_memory;
    /* The site's own MPI may match it too: its source is here, or any. */
    uint8_t may_be_native;
    /* Whether engine_take_done gives it. What nobody would ask for must not be there: it may be gone. */
    uint8_t is_told;
    /* The engine's own, for a message that is thrown away as it comes. */
    uint8_t is_nobodys;
    /* Ranks of the channel. A receive has what it wants, and once it is matched what it got; a send has its
     * destination as `source`. */
    int32_t source, tag;
    /* A receive without a buffer gets memory as long as its message needs, which its owner frees. */
    void *buffer;
    int has_own_memory;
    /* What a receive has room for; a send's length. */
    uint64_t room;
    /* The length of the message that a receive got, as far as there was room, and as it was sent. */
    uint64_t bytes, sent;
    /* The send in the engine, while its data is the program's or MATCHED has not come. */
    struct outgoing *outgoing;
};

static inline int operation_matches(const struct operation *receive, int32_t source, int32_t tag)
{
    return (receive->source == ANY || receive->source == source) &&
           (receive->tag == ANY || receive->tag == tag);
}

struct engine;

/* The next operation that is done and was to be told; NULL where there is none. */
struct operation *engine_take_done(struct engine *engine);

#endif
