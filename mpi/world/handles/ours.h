/* This process's part of the world, from the end of MPI_Init to that of MPI_Finalize. */
#ifndef CAUSEWAY_WORLD_OURS_H
#define CAUSEWAY_WORLD_OURS_H

#include "common/binding/mpi_calls.h"
#include "world/engine/engine.h"
#include "world/world.h"

struct ours {
    /* Whether there is a world of several sites, which calls use. */
    int is_on;
    struct world world;
    struct engine *engine;
    /* Duplicates of MPI_COMM_SELF, for packing and for messages to this process itself, and of the site's
     * MPI_COMM_WORLD, for letting the MPI make progress and for what the site's processes do together at the
     * beginning and the end. */
    MPI_Comm self, site;
    /* Another duplicate of that, for messages of collective operations (handles/slots.h). */
    MPI_Comm hidden;
    /* The group of the site's processes, by native rank. */
    MPI_Group here;
    /* The number of unfinished receives that the MPI alone does not take care of. */
    int receives;
};

extern struct ours ours;

#endif
