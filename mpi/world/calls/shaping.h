/* New communicators get their topology. */
#ifndef CAUSEWAY_WORLD_SHAPING_H
#define CAUSEWAY_WORLD_SHAPING_H

#include "world/handles/comms.h"

/* Gives a communicator that spans sites a topology, which may be NULL where there was no memory. Returns an
 * MPI's code. */
static inline int shaping_record(MPI_Comm made, struct topology *topology)
{
    comm_find(made)->topology = topology;
    return topology ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

#endif
