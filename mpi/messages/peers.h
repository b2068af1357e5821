/* Says whom a message goes to, and how many bytes it has. */
#ifndef CAUSEWAY_PEERS_H
#define CAUSEWAY_PEERS_H

#include "common/binding/export.h"

#include <stdint.h>

/* Once MPI runs. False where it cannot be. */
int peers_begin(void);

/* The rank in MPI_COMM_WORLD of a communicator's rank; of an intercommunicator it is a rank of the other
 * group. NO_RANK where it is none of the world. */
int peers_rank(MPI_Comm comm, int rank);
/* The same of a window's rank. */
int peers_rank_of_window(MPI_Win win, int rank);

int peers_count(MPI_Comm comm);
/* To how many ranks a process of a topology sends, as if a grid's edges had neighbours beyond them. */
int peers_neighbours(MPI_Comm comm);

int64_t peers_bytes(int64_t count, MPI_Datatype type);

#endif
