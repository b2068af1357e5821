/* Sockets between this process and its peers in other sites: they carry the engine's bytes, and nothing else
 * knows of them. No thread, no MPI; everything is done in the calls below, from one thread at a time.
 *
 * A stream begins with HELLO from both ends, the opener's first: 17 bytes, version (u8), number of the world
 * (u64), who speaks (u32), to whom (u32). Whoever says another one is cut off. Two processes that open at the
 * same time have two streams. Each end then sends on the first that it has, and reads both, so that what goes
 * one way stays in order.
 *
 * Plain connect and accept: under the shim they lead to other sites, and accept shows where a peer truly is.
 * It must be the address that the world has of it. */
#ifndef CAUSEWAY_WORLD_STREAMS_H
#define CAUSEWAY_WORLD_STREAMS_H

#include "world/engine/engine.h"
#include "world/world.h"

/* Takes the listener, which must not block. World and engine must last until streams_stop. Returns 0, or -1
 * with errno. */
int streams_start(const struct world *world, int listener, struct engine *engine);

/* Opens a stream to this peer if there is none. What the engine has for it goes out as soon as it is open. A
 * peer that cannot be reached is lost: engine_lost says why. */
void streams_want(uint32_t peer);

/* Writes at once what the engine has for this peer, as far as the kernel takes it; does nothing where there
 * is no stream. The next streams_progress goes on with the rest. */
void streams_write(uint32_t peer);

/* Reads what this peer has said, if messages to it wait for that, and writes what it lets go: a program that
 * only sends asks for nothing else. */
void streams_hear(uint32_t peer);

/* Whether a socket was too full for what the engine had: streams_progress goes on with it. */
int streams_unwritten(void);

/* Looks once at all sockets, after waiting for `wait_ms` at most (-1: until there is something): accepts,
 * reads, writes. Returns how many of them had something, or -1 with errno. */
int streams_progress(int wait_ms);

/* Has streams_progress call `ready` when this descriptor can be read, until it is closed; one at a time. */
int streams_watch(int descriptor, void (*ready)(void));

/* Whether both BYEs have passed on every stream. Before, streams_stop would end messages on their way. */
int streams_said_bye(void);

/* Looks until streams_said_bye holds, for `most_ms` at most, and closes everything. */
void streams_stop(int most_ms);

#endif
