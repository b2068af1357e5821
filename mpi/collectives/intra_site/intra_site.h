/* Collectives among one site's ranks. They are the MPI's own, on the site's communicator, except in
 * operations that run in the background. Ranks resume those in no common order, but the MPI's collectives on
 * one communicator need one. So background operations use point-to-point messages with distinct tags:
 * binomial trees, except that in gather and scatter the root exchanges with every rank directly, and that
 * scans go from rank to rank. Arguments are as in MPI; roots are local ranks. */
#ifndef CAUSEWAY_INTRA_SITE_H
#define CAUSEWAY_INTRA_SITE_H

#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

#include <stdint.h>

/* On return, local rank 0 knows that all ranks have called it; the other ranks need not have waited. */
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
