/* The world library: one MPI_COMM_WORLD over sites that each run their own MPI. This header has what its
 * folders share: who is in the world. Read engine/engine.h for the path of messages, rendezvous/ for how a
 * world comes together, streams/ for sockets. */
#ifndef CAUSEWAY_WORLD_H
#define CAUSEWAY_WORLD_H

#include <stdint.h>
#include <sys/socket.h>

/* A process's place in `processes` is its number in the world: its rank in MPI_COMM_WORLD. Sites come in the
 * order of the command line, a site's processes in that of native ranks. */
struct process {
    uint32_t site, native_rank;
    struct sockaddr_storage address;
};

struct world {
    /* Drawn at random by `causeway run`: who does not know it is no process of this world. */
    uint64_t number;
    /* Processes in all sites; this process; the first process of this site, and how many it has. */
    uint32_t size, me, first_here, here;
    /* The least of all sites. */
    uint32_t tag_ub;
    uint32_t site_count;
    char **site_names;
    /* How each site's processors keep numbers that have no form all share (common/forms/forms.h). */
    uint8_t *forms;
    struct process *processes;
};

/* What native rank 0 of a site tells the rendezvous. */
struct rendezvous_request {
    /* MPI's name and version, for messages to the user: "Open MPI 4.1.4". */
    const char *mpi;
    /* A hash of how this MPI lays out the named types. Sites with different ones refuse each other. */
    uint64_t layout;
    uint8_t forms;
    uint32_t tag_ub;
    /* The greatest that this site's MPI gives: 0 single, 1 funneled, 2 serialized, 3 multiple. Not its own
     * constants. */
    uint8_t thread_level;
    /* The addresses are of this site alone, by native rank. */
    uint32_t processes;
    const struct sockaddr_storage *addresses;
};

/* Bounds on what a world may hold, checked before memory is taken for it. */
enum { WORLD_MOST_PROCESSES = 1 << 17, WORLD_MOST_SITES = 1 << 10 };

static inline int world_is_here(const struct world *world, uint32_t process)
{
    return process - world->first_here < world->here;
}

#endif
