/* This process's part of the world, from the end of MPI_Init to that of MPI_Finalize. */
#ifndef CAUSEWAY_WORLD_OURS_H
#define CAUSEWAY_WORLD_OURS_H

#include "common/binding/mpi_calls.h"
#include "world/engine/engine.h"
#include "world/world.h"

struct ours {
    /* There is a world, and calls go by it. */
    int is_on;
    struct world world;
    struct engine *engine;
    /* Duplicates of MPI_COMM_SELF, for packing and for asking the MPI to go on, and of the site's
     * MPI_COMM_WORLD, for what the sites' processes do together at the beginning and the end. */
    MPI_Comm self, site;
    /* Another of that: messages of collective operations go over it (handles/slots.h). */
    MPI_Comm hidden;
    /* The group of the site's processes, by native rank. */
    MPI_Group here;
    /* Receives that are not done, and that not the MPI alone takes care of. */
    int receives;
};

extern struct ours ours;

#endif
