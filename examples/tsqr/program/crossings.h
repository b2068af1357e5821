/* What an MPI library below us sends between sites. The functions of MPI that ScaLAPACK's BLACS calls are
 * defined here, count, and pass the call on to the next library: Causeway's collectives, or the MPI. */
#ifndef TSQR_CROSSINGS_H
#define TSQR_CROSSINGS_H

#include <stdint.h>

/* Gives the number of sites, or 0 or -1 as tsqr_topology_read. Nothing is counted before. */
int crossings_open(void);

/* Messages of this rank to other sites. A collective call is counted at its root, or at rank 0, as the least
 * that it needs over S sites: S - 1 for a broadcast or a reduction to one rank, 2 (S - 1) where all ranks get
 * the result. */
int64_t crossings_count(void);

#endif
