/* Gives new communicators their topology. */
#ifndef CAUSEWAY_WORLD_SHAPING_H
#define CAUSEWAY_WORLD_SHAPING_H

#include "world/handles/comms.h"

/* Gives a communicator that spans sites a topology, which is NULL if memory was exhausted. Returns an MPI
 * error code. */
static inline int shaping_record(MPI_Comm made, struct topology *topology)
{
    comm_find(made)->topology = topology;
    return topology ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

#endif
