/* Finds the destination of a message, and its size in bytes. */
#ifndef CAUSEWAY_PEERS_H
#define CAUSEWAY_PEERS_H

#include "common/binding/export.h"

#include <stdint.h>

/* Call it once MPI is initialised. Returns false on failure. */
int peers_begin(void);

/* The rank in MPI_COMM_WORLD of a communicator's rank, or of a rank of the other group of an
 * intercommunicator. NO_RANK if it is not in the world. */
int peers_rank(MPI_Comm comm, int rank);
/* The same for a window's rank. */
int peers_rank_of_window(MPI_Win win, int rank);

int peers_count(MPI_Comm comm);
/* The number of ranks to which a process of a topology sends, as if ranks on a grid's edges had neighbours
 * beyond them. */
int peers_neighbours(MPI_Comm comm);

int64_t peers_bytes(int64_t count, MPI_Datatype type);

#endif
