/* The engine's state. Only files of this folder include this. */
#ifndef CAUSEWAY_WORLD_STATE_H
#define CAUSEWAY_WORLD_STATE_H

#include "world/engine/engine.h"
#include "world/engine/numbers.h"
#include "world/engine/operation.h"
#include "world/frames/frames.h"

enum {
    /* How many counted bytes of a peer may be unfreed at first. Both ends know this, so a stream begins with
     * data, not with a request. */
    FIRST_WINDOW = 1024 * FRAME_KIB,
    /* Twice the bandwidth-delay product of 1 Gbit/s over 64 ms. */
    MOST_WINDOW = 16 * 1024 * FRAME_KIB,
    /* The limit of the sum of a process's windows, not counting their initial sizes. */
    MOST_WINDOWS = 256 * 1024 * FRAME_KIB,
    /* The limit of a peer's messages for which there is no receive yet, including those without data: the
     * engine keeps 150 MB of records for this many. MPI lets a program send any number of messages before it
     * receives; no program is known that sends as many. */
    MOST_HEADS = 1024 * FRAME_KIB,
    /* Limits of the heads and data that are laid out to be written. More would make a small message wait for
     * them. */
    PIECES = 16,
    MOST_LAID_OUT = 512 * FRAME_KIB,
};

/* A message that has begun to arrive. If data comes in separate frames, peer and id identify it until all
 * data has arrived. */
struct message {
    struct message *next;
    uint32_t peer, id;
    uint64_t context;
    uint32_t source;
    int32_t tag;
    uint8_t is_sync;
    /* All data follows in the frame of the head. */
    uint8_t is_whole;
    uint64_t bytes, came;
    /* The receive that got it. Until there is one, data is held here, all of it counted. */
    struct operation *receive;
    unsigned char *held;
    uint64_t held_room;
};

/* A send until its last byte is written, and until MATCHED has arrived if it is synchronous. */
struct outgoing {
    struct outgoing *next;
    struct operation *operation;
    uint32_t peer, id;
    uint64_t context;
    uint32_t source;
    int32_t tag;
    uint8_t is_sync, is_matched, is_granted, is_named, has_copy;
    /* Whether it has a head or data that is not laid out. */
    uint8_t is_queued;
    const unsigned char *data;
    /* Its length in bytes; how many are laid out in pieces, and how many are written; its share of the
     * engine's copies. */
    uint64_t bytes, laid_out, written, copied;
    /* The number of pieces that are not written yet; the head is one, or in one. */
    uint32_t pieces;
};

/* A head and the data that follows it, to be written to the socket. */
struct piece {
    unsigned char head[FRAME_MOST_HEAD];
    uint32_t head_bytes, data_bytes;
    /* The send whose data this is, from offset `at`. */
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

    /* Incoming: the head that is being read, then the data that follows it. */
    unsigned char head[FRAME_MOST_HEAD];
    size_t head_bytes;
    uint64_t data_left;
    /* The message to which the data belongs, and whether the data is counted. */
    struct message *into;
    uint8_t is_counted;
    /* The window in bytes; how much of it the peer may still send; how much has been freed and not credited
     * yet; how much has been freed since the window last grew. */
    uint64_t window, may_come, owed, freed;
    /* The same in heads: how many may still come, and how many have been matched and not credited yet. */
    uint32_t heads_may_come, heads_owed;

    /* Outgoing. */
    uint64_t credit;
    uint32_t heads_left;
    uint32_t last_id;
    struct answers answers;
    struct outgoing *heads, **heads_end;
    /* Sends with data left, in the order of their turns, and how many of them are granted. */
    struct outgoing *data, **data_end;
    uint32_t granted;
    struct piece pieces[PIECES];
    uint32_t first_piece, piece_count;
    /* The bytes of the first piece that are written, and those of all pieces that are not. */
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
    /* Channels with receives that the site's own MPI may match. */
    struct channel *listed;
    /* Messages of communicators that this process has not made yet, in the order of arrival. */
    struct message *orphans, **orphans_end;
    struct operation *done, **done_end;
    /* Bytes that were copied from the program and are not written yet. */
    uint64_t copied;
    /* The number of sends that are not completely written, or that still wait for MATCHED. */
    uint64_t waiting;
};

static inline uint64_t number_of(uint32_t peer, uint32_t id) { return (uint64_t)peer << 32 | id; }

/* Marks an operation done, and lists it if somebody will ask for it. */
void operation_finish(struct engine *engine, struct operation *operation);
/* `bytes` counted bytes of a peer are no longer held. */
void credit_free(struct engine *engine, struct peer *peer, uint64_t bytes);
/* Whether enough credit has accumulated to be worth a frame. */
int credit_is_due(const struct peer *peer);
/* Returns that frame, and gives the credit to the peer. */
struct frame credit_take(struct peer *peer);
/* Queues a GRANT or MATCHED. */
void answer(struct engine *engine, uint32_t peer, uint8_t kind, uint32_t id);

/* Matches a message whose head has arrived. Returns NULL, or what is wrong with it. */
const char *message_arrives(struct engine *engine, struct message *message);
/* Called when all data of a message has arrived. */
void message_completes(struct engine *engine, struct message *message);
void message_free(struct message *message);

/* Called for our sends when the peer answers, and when pieces have been written. */
void send_is_granted(struct engine *engine, uint32_t peer, uint32_t id);
void send_piece_written(struct engine *engine, struct outgoing *out, uint32_t bytes);
void send_is_matched(struct engine *engine, uint32_t peer, uint32_t id);
void sends_free(struct peer *peer);

#endif
