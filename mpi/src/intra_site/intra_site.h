/* Collectives of one site's ranks: the MPI's own on the site's communicator, except in operations that go on
 * beside the program. Those are taken up by each rank when it can, in no common order, as the MPI's
 * collectives on one communicator must be; their messages are told apart by tags instead. Then: binomial
 * trees, except that gather and scatter are done by the root alone, and scans go from rank to rank.
 *
 * Arguments as in MPI, roots numbered in the site. */
#ifndef CAUSEWAY_INTRA_SITE_H
#define CAUSEWAY_INTRA_SITE_H

#include "topology/hierarchy.h"
#include "transfer/datatype.h"

#include <stdint.h>

/* The first rank knows that all are there; the others need not wait. */
int intra_site_barrier(struct hierarchy *on);
int intra_site_bcast(struct hierarchy *on, void *buffer, int count, MPI_Datatype type, int root);
int intra_site_reduce(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                      MPI_Op op, int root);
/* Of bytes. */
int intra_site_gather(struct hierarchy *on, const char *from, int64_t length, char *into, int root);
int intra_site_scatter(struct hierarchy *on, const char *from, int64_t length, char *into, int root);
int intra_site_scatterv(struct hierarchy *on, const void *from, const int counts[], const int places[],
                        MPI_Datatype type, void *into, int count, int root);
int intra_site_scan(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                    MPI_Op op);
int intra_site_exscan(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                      MPI_Op op);

#endif
