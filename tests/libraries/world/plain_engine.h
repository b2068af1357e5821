/* An engine for tests of streams: what goes to a peer is a queue of bytes in frames of its own, and what
 * comes is counted and compared. Frames: 'D', u32 length, so many bytes, which go on where the last frame
 * ended; 'B', the end. Every byte's value follows from its place and its sender. */
#ifndef PLAIN_ENGINE_H
#define PLAIN_ENGINE_H

#include "world/engine/engine.h"

enum { MOST_PEERS = 4 };

struct engine {
    struct plain_peer {
        /* So many bytes of data are to be sent, from `next` on, then the end. */
        uint64_t next, to_send;
        /* The rest of the frame that is being sent, its head first. */
        unsigned char head[5];
        size_t head_left, data_left;
        int says_bye, bye_queued, bye_sent;
        /* As if what goes to it waited for its word. */
        int awaits;
        /* What came: the frame that is being read, and how much data there was. */
        unsigned char head_in[5];
        size_t head_in_bytes, data_in_left;
        uint64_t received;
        int bye_came, ups, lost;
        char reason[200];
    } peers[MOST_PEERS];
    uint32_t me;
    /* Data that came otherwise than it was sent. */
    int wrong;
};

/* Has so many more bytes sent to a peer. */
void plain_send(struct engine *engine, uint32_t peer, uint64_t bytes);

#endif
