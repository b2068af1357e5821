/* Collective operations made of messages: correct for all arguments, in as few lines as that takes, and not
 * optimised for speed. All use the hidden half of a communicator, `on`; arguments are as in MPI, with ranks
 * of the communicator. On an intercommunicator, blocks are indexed by the remote group's ranks, and a root
 * may be MPI_ROOT or MPI_PROC_NULL; there are no scans. They return an MPI error code, and call no error
 * handler. */
#ifndef CAUSEWAY_WORLD_PLAIN_H
#define CAUSEWAY_WORLD_PLAIN_H

#include "world/native/transfer.h"

int basic_barrier(struct comm *on);
int basic_bcast(struct comm *on, void *buffer, int count, MPI_Datatype type, int root);

/* A buffer with one block for each rank. */
struct blocks {
    const void *buffer;
    /* By rank: the number of elements, and where they begin, in elements (in bytes with `types`). If NULL,
     * each block has `count` elements, and they are contiguous. */
    const int *counts, *starts;
    int count;
    MPI_Datatype type;
    const MPI_Datatype *types;
    /* The extent of `type`; 1 with `types`. */
    MPI_Aint extent;
};
/* Describe blocks; they return an MPI error code. */
int blocks_even(struct blocks *blocks, const void *buffer, int count, MPI_Datatype type);
int blocks_listed(struct blocks *blocks, const void *buffer, const int *counts, const int *starts,
                  MPI_Datatype type);
int blocks_typed(struct blocks *blocks, const void *buffer, const int *counts, const int *starts,
                 const MPI_Datatype *types);
void *block_at(const struct blocks *blocks, int rank);
int block_count(const struct blocks *blocks, int rank);
MPI_Datatype block_type(const struct blocks *blocks, int rank);

/* MPI_IN_PLACE is passed in the same argument as in MPI; for blocks, as their `buffer`. */
int basic_gather(struct comm *on, const void *send, int count, MPI_Datatype type, const struct blocks *into,
                 int root);
int basic_scatter(struct comm *on, const struct blocks *from, void *receive, int count, MPI_Datatype type,
                  int root);
int basic_allgather(struct comm *on, const void *send, int count, MPI_Datatype type,
                    const struct blocks *into);
int basic_alltoall(struct comm *on, const struct blocks *from, const struct blocks *into);

int basic_reduce(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op,
                 int root);
int basic_allreduce(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op);
/* If `counts` is NULL, each rank gets `count` elements. */
int basic_reduce_scatter(struct comm *on, const void *send, void *into, const int *counts, int count,
                         MPI_Datatype type, MPI_Op op);
int basic_scan(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op);
int basic_exscan(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op);

#endif
