/* Which rank of a communicator is at which site. */
#ifndef TSQR_TOPOLOGY_H
#define TSQR_TOPOLOGY_H

#include <mpi.h>

/* Fills site, one for each rank, numbered from 0 by the lowest rank of each, and gives their number; 0 where
 * CAUSEWAY_TSQR_GROUPS is wrong, -1 where there is no memory. It does not communicate. */
int tsqr_topology_read(MPI_Comm comm, int *site);

#endif
