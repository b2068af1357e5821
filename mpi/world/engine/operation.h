/* An operation that the engine does for the program, a receive or a send, and the channel on which it is
 * done. */
#ifndef CAUSEWAY_WORLD_OPERATION_H
#define CAUSEWAY_WORLD_OPERATION_H

#include <stddef.h>
#include <stdint.h>

/* Any source, or any tag. Not an MPI constant, because those of MPIs differ. */
enum { ANY = -1 };

/* A communicator, or the hidden half of one, as the engine sees it. */
struct channel {
    uint64_t context;
    /* The world number of each rank; the memory belongs to the owner. */
    const int32_t *numbers;
    uint32_t size;
    /* The engine only keeps it for its callers. */
    void *owner;

    /* In the order of posting. Invariant: no message in `arrived` matches a receive in `posted`. */
    struct operation *posted, **posted_end;
    /* In the order of arrival, whether or not a message is complete. */
    struct message *arrived, **arrived_end;
    /* The number of receives in `posted` that the site's own MPI may match, too. While there are any, the
     * channel is listed. */
    uint32_t may_be_native;
    int is_listed;
    struct channel *next_listed;
};

enum operation_state {
    /* A receive waits for its message; a send still needs the program's memory. */
    OPERATION_WAITS,
    /* A receive has its message, which has not completely arrived. */
    OPERATION_MATCHED,
    OPERATION_DONE,
};

struct operation {
    /* The next one in `posted`, later among those that are done. */
    struct operation *next;
    struct channel *channel;
    enum operation_state state;
    uint8_t is_send, is_sync, is_cancelled, is_truncated, has_no_memory;
    /* The site's own MPI may match it, too: its source is at this site, or any. */
    uint8_t may_be_native;
    /* Whether engine_take_done returns it. An operation for which nobody will ask must not be listed, because
     * it may be freed. */
    uint8_t is_told;
    /* It belongs to the engine, for a message that is discarded as it arrives. */
    uint8_t is_nobodys;
    /* `source` is a rank of the channel. A receive has the values that it wants and, once it is matched,
     * those of its message; a send has its destination as `source`. */
    int32_t source, tag;
    /* A receive without a buffer gets memory of the length that its message needs; the receive's owner frees
     * it. */
    void *buffer;
    int has_own_memory;
    /* The size of a receive's buffer, or the length of a send. */
    uint64_t room;
    /* The length of a receive's message, as far as there was room, and as it was sent. */
    uint64_t bytes, sent;
    /* The send in the engine, as long as its data is in the program's memory, or MATCHED has not arrived. */
    struct outgoing *outgoing;
};

static inline int operation_matches(const struct operation *receive, int32_t source, int32_t tag)
{
    return (receive->source == ANY || receive->source == source) &&
           (receive->tag == ANY || receive->tag == tag);
}

struct engine;

/* Returns the next operation that is done and whose is_told is set; NULL if there is none. */
struct operation *engine_take_done(struct engine *engine);

#endif
