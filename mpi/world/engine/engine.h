/* The engine: messages between this process and its peers in other sites. It matches, orders and holds
 * messages, and gives credit; it does not depend on MPI, sockets or clocks. Bytes from a peer go in, bytes
 * for a peer come out.
 *
 *     calls:    engine_post, engine_send, engine_probe ...   what the program wants   (matching.h, sending.h)
 *     streams:  engine_received, engine_to_send ...          bytes                    (below)
 *
 * After each send, calls make streams write at once, without progress(): streams_write(peer), which does
 * nothing if the stream is not open yet or its socket is full. Then they make streams check whether the peer
 * lets waiting messages go: streams_hear(peer).
 *
 * A peer is named by its number in the world. Nothing here calls back: callers ask which operations are done
 * (engine_take_done). Only one thread at a time may call the engine. */
#ifndef CAUSEWAY_WORLD_ENGINE_H
#define CAUSEWAY_WORLD_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct engine;

/* `peers` is the number of processes of the world. Returns NULL if memory is exhausted. */
struct engine *engine_new(uint32_t peers);
void engine_free(struct engine *engine);

/* Streams call this when a peer's stream has shown the right HELLO, or when we open one. From now on they may
 * ask for bytes to send. */
void engine_peer_up(struct engine *engine, uint32_t peer);
/* Streams call this when the stream has ended or failed. After the peer's BYE that is no loss. `reason` is
 * copied. */
void engine_peer_lost(struct engine *engine, uint32_t peer, const char *reason);

/* Takes bytes from a peer, in pieces of any size. Returns 0, or -1 if they break the protocol: the peer is
 * then lost, the reason is kept, and its stream must be closed. */
int engine_received(struct engine *engine, uint32_t peer, const void *bytes, size_t n);
/* Where the next bytes of data may be read to directly, and how many at most; NULL if a head comes next, or
 * data to be discarded. Valid until the next call of the engine. */
void *engine_read_target(struct engine *engine, uint32_t peer, size_t *n);
/* n bytes have been read to that address. */
void engine_read(struct engine *engine, uint32_t peer, size_t n);

/* Lists what is to be written now, at most `most` pieces. Returns their number, 0 if there is nothing. They
 * are valid until the next call of the engine. */
int engine_to_send(struct engine *engine, uint32_t peer, struct iovec *pieces, int most);
/* The first n bytes of those pieces have been written. */
void engine_sent(struct engine *engine, uint32_t peer, size_t n);
/* Whether engine_to_send would return anything. */
int engine_has_to_send(const struct engine *engine, uint32_t peer);

/* Whether messages to this peer wait for its credit, or for a receive there. */
int engine_awaits(const struct engine *engine, uint32_t peer);

/* The end of the world: queues BYE for every peer that is up, and for those that come up later. */
void engine_say_bye(struct engine *engine);
/* Whether this peer's BYE has arrived, and whether ours has been written. */
int engine_bye_came(const struct engine *engine, uint32_t peer);
int engine_bye_sent(const struct engine *engine, uint32_t peer);

/* Why the first peer was lost without BYE, and which it was; NULL if none was. */
const char *engine_lost(const struct engine *engine, uint32_t *peer);

#endif
