/* How far the sites are from one another. */
#ifndef TSQR_LINKS_H
#define TSQR_LINKS_H

#include <mpi.h>

/* Measures the links between the first ranks of all sites, `leaders`, of which the first is rank 0: each
 * sends each other some empty messages, all at once, and takes the shortest round trip. Only leaders call it.
 * Fills seconds, sites x sites, at rank 0: the half of a round trip, the same in both directions. */
void tsqr_links_measure(MPI_Comm comm, const int *leaders, int sites, double *seconds);

#endif
