/* The world library: one MPI_COMM_WORLD over sites that each run their own MPI. This header defines what its
 * folders share: the processes of the world. Read engine/engine.h for the path of messages, rendezvous/ for
 * how a world comes together, streams/ for sockets. */
#ifndef CAUSEWAY_WORLD_H
#define CAUSEWAY_WORLD_H

#include <stdint.h>
#include <sys/socket.h>

/* A process's index in `processes` is its number in the world: its rank in MPI_COMM_WORLD. Sites are in the
 * order of the command line, a site's processes in the order of native ranks. */
struct process {
    uint32_t site, native_rank;
    struct sockaddr_storage address;
};

struct world {
    /* Drawn at random by `causeway run`: a process that does not know it does not belong to this world. */
    uint64_t number;
    /* The number of processes at all sites; this process; the first process of this site, and how many the
     * site has. */
    uint32_t size, me, first_here, here;
    /* The smallest of all sites. */
    uint32_t tag_ub;
    uint32_t site_count;
    char **site_names;
    /* How each site's processors keep numbers whose forms differ between processors
     * (common/forms/forms.h). */
    uint8_t *forms;
    struct process *processes;
};

/* What native rank 0 of a site tells the rendezvous. */
struct rendezvous_request {
    /* The MPI's name and version, for messages to the user: "Open MPI 4.1.4". */
    const char *mpi;
    /* A hash of how this MPI lays out the named types. Sites with different layouts refuse each other. */
    uint64_t layout;
    uint8_t forms;
    uint32_t tag_ub;
    /* The highest level that this site's MPI provides: 0 single, 1 funneled, 2 serialized, 3 multiple. These
     * are not the MPI's own constants. */
    uint8_t thread_level;
    /* The processes of this site only, and their addresses by native rank. */
    uint32_t processes;
    const struct sockaddr_storage *addresses;
};

/* Limits of a world's size, checked before memory is allocated for it. */
enum { WORLD_MOST_PROCESSES = 1 << 17, WORLD_MOST_SITES = 1 << 10 };

static inline int world_is_here(const struct world *world, uint32_t process)
{
    return process - world->first_here < world->here;
}

#endif
