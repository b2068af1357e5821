/* What the engine keeps. Only files of this folder include it. */
#ifndef CAUSEWAY_WORLD_STATE_H
#define CAUSEWAY_WORLD_STATE_H

#include "world/engine/engine.h"
#include "world/engine/numbers.h"
#include "world/engine/operation.h"
#include "world/frames/frames.h"

enum {
    /* What a peer may have counted and unfreed at first. Both ends know it: a stream begins with data, not
     * with a question. */
    FIRST_WINDOW = 1024 * FRAME_KIB,
    /* Twice the bandwidth-delay product of 1 Gbit/s over 64 ms. */
    MOST_WINDOW = 16 * 1024 * FRAME_KIB,
    /* All windows of a process stay within this, first ones aside. */
    MOST_WINDOWS = 256 * 1024 * FRAME_KIB,
    /* Messages of a peer for which there is no receive yet, those without data among them: 150 MB of what the
     * engine keeps of each. MPI lets a program send any number before it receives; none is known that sends
     * as many. */
    MOST_HEADS = 1024 * FRAME_KIB,
    /* Heads and data that are laid out to be written. More would make a small message wait for them. */
    PIECES = 16,
    MOST_LAID_OUT = 512 * FRAME_KIB,
};

/* A message that has begun to arrive. Where data comes in frames of its own, peer and id name it until all is
 * there. */
struct message {
    struct message *next;
    uint32_t peer, id;
    uint64_t context;
    uint32_t source;
    int32_t tag;
    uint8_t is_sync;
    /* All data follows the head. */
    uint8_t is_whole;
    uint64_t bytes, came;
    /* The receive that has it. Until then data is held here, all of it counted. */
    struct operation *receive;
    unsigned char *held;
    uint64_t held_room;
};

/* A send until its last byte is written, and until MATCHED has come if it is synchronous. */
struct outgoing {
    struct outgoing *next;
    struct operation *operation;
    uint32_t peer, id;
    uint64_t context;
    uint32_t source;
    int32_t tag;
    uint8_t is_sync, is_matched, is_granted, is_named, has_copy;
    /* It has a head or data that is not laid out. */
    uint8_t is_queued;
    const unsigned char *data;
    /* Its length; what of it is laid out in pieces, and written; what of the engine's copies it is. */
    uint64_t bytes, laid_out, written, copied;
    /* Pieces that are not written yet; the head is one, or in one. */
    uint32_t pieces;
};

/* A head and the data behind it, on their way to the socket. */
struct piece {
    unsigned char head[FRAME_MOST_HEAD];
    uint32_t head_bytes, data_bytes;
    /* The send whose data it is, from `at`. */
    struct outgoing *of;
    uint64_t at;
    uint8_t is_bye;
};

/* GRANT and MATCHED, in the order in which they were decided. */
struct answers {
    struct answer {
        uint8_t kind;
        uint32_t id;
    } *all;
    size_t first, end, room;
};

struct peer {
    uint8_t is_up, is_lost, has_said_bye, bye_is_laid_out, bye_is_written;
    char *why_lost;

    /* Coming in: the head that is being read, then the data behind it. */
    unsigned char head[FRAME_MOST_HEAD];
    size_t head_bytes;
    uint64_t data_left;
    /* Where the data goes; whether it was counted. */
    struct message *into;
    uint8_t is_counted;
    /* The window; what of it the peer may still send; what has become free and is not credited yet; what has
     * become free since the window last grew. */
    uint64_t window, may_come, owed, freed;
    /* The same in heads: how many may still come, and how many have found a receive. */
    uint32_t heads_may_come, heads_owed;

    /* Going out. */
    uint64_t credit;
    uint32_t heads_left;
    uint32_t last_id;
    struct answers answers;
    struct outgoing *heads, **heads_end;
    /* Those with data left, in turn; how many of them are granted. */
    struct outgoing *data, **data_end;
    uint32_t granted;
    struct piece pieces[PIECES];
    uint32_t first_piece, piece_count;
    /* Bytes of the first piece that are written, and of all pieces that are not. */
    uint64_t piece_written, laid_out;
};

struct engine {
    uint32_t peer_count;
    struct peer *peers;
    uint64_t windows;
    int is_ending;
    uint32_t lost_peer;
    int has_lost;

    struct numbers channels, messages, sends;
    /* Channels with receives that may be matched here. */
    struct channel *listed;
    /* Messages of communicators that this process has not made yet, in the order of arrival. */
    struct message *orphans, **orphans_end;
    struct operation *done, **done_end;
    /* Bytes copied from programs and not written yet. */
    uint64_t copied;
    /* Sends that are not written to their end, or not matched where they wait for that. */
    uint64_t waiting;
};

static inline uint64_t number_of(uint32_t peer, uint32_t id) { return (uint64_t)peer << 32 | id; }

/* Marks an operation done, and lists it where somebody will ask. */
void operation_finish(struct engine *engine, struct operation *operation);
/* So many counted bytes of a peer are held no longer. */
void credit_free(struct engine *engine, struct peer *peer, uint64_t bytes);
/* Whether there is credit that is worth a frame. */
int credit_is_due(const struct peer *peer);
/* That frame. The credit is then the peer's. */
struct frame credit_take(struct peer *peer);
/* Queues a GRANT or MATCHED. */
void answer(struct engine *engine, uint32_t peer, uint8_t kind, uint32_t id);

/* A message's head has come: matches it. Returns NULL, or what is wrong with it. */
const char *message_arrives(struct engine *engine, struct message *message);
/* All data is there. */
void message_completes(struct engine *engine, struct message *message);
void message_free(struct message *message);

/* What the peer's answers do to our sends. */
void send_is_granted(struct engine *engine, uint32_t peer, uint32_t id);
void send_piece_written(struct engine *engine, struct outgoing *out, uint32_t bytes);
void send_is_matched(struct engine *engine, uint32_t peer, uint32_t id);
void sends_free(struct peer *peer);

#endif
