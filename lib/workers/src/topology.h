/* What the MPI says of where ranks are, by the calls of docs/topology.md, as levels of a tree. */
#ifndef CAUSEWAY_WORKERS_TOPOLOGY_H
#define CAUSEWAY_WORKERS_TOPOLOGY_H

#include "settings.h"
#include "tree.h"

#include <mpi.h>

/* All ranks call it, with rank 0's settings; rank 0's tree gets the levels. Without Causeway it gets none. */
void workers_topology_read(MPI_Comm comm, const struct workers_settings *settings, struct workers_tree *tree);

#endif
