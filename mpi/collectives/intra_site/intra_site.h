/* Collectives of one site's ranks. They are the MPI's own, on the site's communicator, except in operations
 * that go on beside the program. Ranks resume those when they can, in no common order, and the MPI's
 * collectives on one communicator need one. So there they are made of messages, which tags tell apart:
 * binomial trees, except that the root alone does gather and scatter, and that scans go from rank to rank.
 * Arguments are as in MPI, with roots numbered in the site. */
#ifndef CAUSEWAY_INTRA_SITE_H
#define CAUSEWAY_INTRA_SITE_H

#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

#include <stdint.h>

/* The first rank knows that all are there; the others need not wait. */
int intra_site_barrier(struct hierarchy *on);
int intra_site_bcast(struct hierarchy *on, void *buffer, int count, MPI_Datatype type, int root);
int intra_site_reduce(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                      MPI_Op op, int root);
/* `length` is in bytes. */
int intra_site_gather(struct hierarchy *on, const char *from, int64_t length, char *into, int root);
int intra_site_scatter(struct hierarchy *on, const char *from, int64_t length, char *into, int root);
int intra_site_scatterv(struct hierarchy *on, const void *from, const int counts[], const int displs[],
                        MPI_Datatype type, void *into, int count, int root);
int intra_site_scan(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                    MPI_Op op);
int intra_site_exscan(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                      MPI_Op op);

#endif
