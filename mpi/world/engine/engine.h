/* The engine: messages between this process and its peers in other sites. It matches, orders, holds and
 * credits; it knows no MPI, no socket and no clock. Bytes from a peer go in, bytes for a peer come out.
 *
 *     calls:    engine_post, engine_send, engine_probe ...   what the program wants   (matching.h, sending.h)
 *     streams:  engine_received, engine_to_send ...          bytes                    (below)
 *
 * After each send, calls ask streams to write at once, without progress(): streams_write(peer), which does
 * nothing where the stream is not open yet or its socket is full. Then they have streams look whether the
 * peer lets waiting messages go: streams_hear(peer).
 *
 * A peer is named by its number in the world. Nothing here calls back: what is done is found by asking
 * (engine_take_done). All calls come from one thread at a time. */
#ifndef CAUSEWAY_WORLD_ENGINE_H
#define CAUSEWAY_WORLD_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct engine;

/* `peers` is the number of processes of the world. NULL where there is no memory. */
struct engine *engine_new(uint32_t peers);
void engine_free(struct engine *engine);

/* What streams tell the engine: this peer's stream has shown the right HELLO, or is being opened by us.
 * Bytes may be asked for from now on. */
void engine_peer_up(struct engine *engine, uint32_t peer);
/* The stream ended or failed. After the peer's BYE that is no loss. `reason` is copied. */
void engine_peer_lost(struct engine *engine, uint32_t peer, const char *reason);

/* Bytes that came from a peer, in any pieces. Returns 0, or -1 where they break the protocol; the peer is
 * lost then, the reason is kept, and its stream must be closed. */
int engine_received(struct engine *engine, uint32_t peer, const void *bytes, size_t n);
/* Where the next bytes of data may be read straight to, and how many at most; NULL where a head comes next,
 * or what is to be thrown away. Valid until the next call of the engine. */
void *engine_read_target(struct engine *engine, uint32_t peer, size_t *n);
/* So many bytes were read to there. */
void engine_read(struct engine *engine, uint32_t peer, size_t n);

/* Gives what is to be written now: up to `most` pieces; 0 where there is nothing. They are valid until the
 * next call of the engine. */
int engine_to_send(struct engine *engine, uint32_t peer, struct iovec *pieces, int most);
/* The first n bytes of that were written. */
void engine_sent(struct engine *engine, uint32_t peer, size_t n);
/* Whether engine_to_send would have something. */
int engine_has_to_send(const struct engine *engine, uint32_t peer);

/* Whether messages to this peer wait for its credit, or for a receive there. */
int engine_awaits(const struct engine *engine, uint32_t peer);

/* The end of the world: queues BYE for every peer that is up, and for those that come up later. */
void engine_say_bye(struct engine *engine);
/* Whether this peer's BYE has come, and whether ours has been written. */
int engine_bye_came(const struct engine *engine, uint32_t peer);
int engine_bye_sent(const struct engine *engine, uint32_t peer);

/* The first peer that was lost without BYE and why, or NULL. */
const char *engine_lost(const struct engine *engine, uint32_t *peer);

#endif
