/* Sockets between this process and its peers at other sites: they carry the engine's bytes, and no other code
 * uses them. There is no thread and no MPI here; everything is done in the calls below, from one thread at a
 * time.
 *
 * A stream begins with HELLO from both ends, the opener's first: 17 bytes, version (u8), number of the world
 * (u64), sender (u32), receiver (u32). An end that sends any other HELLO is cut off. If two processes open a
 * stream at the same time, they have two. Each end then sends on the first that it has, and reads both, so
 * that data in one direction stays in order.
 *
 * They use plain connect and accept: under the shim these lead to other sites, and accept shows a peer's true
 * address, which must be the one that the world has for it. */
#ifndef CAUSEWAY_WORLD_STREAMS_H
#define CAUSEWAY_WORLD_STREAMS_H

#include "world/engine/engine.h"
#include "world/world.h"

/* Takes over the listener, which must be non-blocking. World and engine must last until streams_stop. Returns
 * 0, or -1 with errno. */
int streams_start(const struct world *world, int listener, struct engine *engine);

/* Opens a stream to this peer if there is none. The engine's data for the peer is sent as soon as the stream
 * is open. A peer that cannot be reached is lost: engine_lost says why. */
void streams_want(uint32_t peer);

/* Writes at once what the engine has for this peer, as far as the kernel accepts it; sends nothing if there
 * is no stream. The next streams_progress continues with the rest. */
void streams_write(uint32_t peer);

/* Reads what this peer has sent, if messages to it wait for that, and writes the messages that it lets go: a
 * program that only sends makes no other call that does this. */
void streams_hear(uint32_t peer);

/* Whether a socket was too full for what the engine had: streams_progress then continues with it. */
int streams_unwritten(void);

/* Polls all sockets once, waiting for `wait_ms` at most (-1: until one is ready): accepts, reads, writes.
 * Returns how many of them were ready, or -1 with errno. */
int streams_progress(int wait_ms);

/* Makes streams_progress call `ready` when this descriptor is readable, until it is closed; one descriptor at
 * a time. */
int streams_watch(int descriptor, void (*ready)(void));

/* Whether both BYEs have been exchanged on every stream. Before that, streams_stop would lose messages in
 * transit. */
int streams_said_bye(void);

/* Polls until streams_said_bye() is true, for `most_ms` at most, and closes everything. */
void streams_stop(int most_ms);

#endif
