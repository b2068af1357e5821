/* The algorithms of all operations, one per file. The comment at the head of each file states what its
 * algorithm costs, in these symbols: R the round-trip time between sites, B the rate between sites, s the
 * bytes of one rank's part, S the number of sites, n the number of ranks at a site. Inside a site the
 * algorithms use the MPI's own collectives, on the communicator of the site's ranks, except where segments
 * are pipelined (local_reduction.h).
 *
 * Arguments are as in MPI and have been checked: counts are not negative and roots exist. The caller has
 * replaced MPI_IN_PLACE with the buffer it stands for, or passes it on where the algorithm makes use of
 * it. */
#ifndef CAUSEWAY_ALGORITHMS_H
#define CAUSEWAY_ALGORITHMS_H

#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

int barrier_leaders(struct hierarchy *on);

int bcast_segments(struct hierarchy *on, void *buffer, int count, const struct shape *shape, int root,
                   int64_t segment);

int reduce_segments(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int root, int64_t segment);
int allreduce_segments(struct hierarchy *on, const void *from, void *into, int count,
                       const struct shape *shape, MPI_Op op, int64_t segment, int ahead);
int allreduce_multi_leader(struct hierarchy *on, const void *from, void *into, int count,
                           const struct shape *shape, MPI_Op op, int64_t segment, int ahead);
/* Routes everything through the site `hub`. */
int allreduce_hub(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int hub, int64_t segment);
/* Routes everything through the site `hub`, or through no site if `hub` is -1. */
int allreduce_split(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int hub, int64_t segment);
/* Rank i gets a block of counts[i] elements. */
int reduce_scatter_leaders(struct hierarchy *on, const void *from, void *into, const int counts[],
                           const struct shape *shape, MPI_Op op);

int reduce_scatter_multi_leader(struct hierarchy *on, const void *from, void *into, const int counts[],
                                const struct shape *shape, MPI_Op op, int64_t segment);

/* Every rank sends `length` bytes to the root, where `room` receives them in the order of on->members. */
int gather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room, int root);
int gather_direct(struct hierarchy *on, const void *from, MPI_Count count, MPI_Datatype type, void *into,
                  const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype into_type, int root);
int scatter_leaders(struct hierarchy *on, const char *room, int64_t length, char *into, int root);
int scatter_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint displs[],
                   MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, int root);

/* Every rank sends its bytes to all ranks. `room` receives them in the order of on->members. */
int allgather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room);
/* Rank on->members[i] contributes lengths[i] bytes, whose place in `room` is room_at[i]. The caller has
 * already put its own bytes there. */
int allgather_multi_leader(struct hierarchy *on, const int64_t lengths[], const int64_t room_at[], char *room,
                           int64_t segment);

/* Each rank sends `length` bytes to each rank. Both buffers are in the order of on->members. */
int alltoall_leaders(struct hierarchy *on, const char *from, int64_t length, char *into);
/* Displacements are in bytes. */
int alltoall_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint displs[],
                    const MPI_Datatype types[], void *into, const MPI_Count into_counts[],
                    const MPI_Aint into_displs[], const MPI_Datatype into_types[]);

/* The following combine in the order of ranks, whatever the operation and the placement. A root of -1 means
 * that every rank gets the result. */
int reduce_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int root);
int allreduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                     MPI_Op op, int64_t segment);
/* Every rank sends its block to all ranks: rank i's block has counts[i] elements and begins at byte
 * displs[i]. A rank's own block may be there already. */
int hand_out_blocks(struct hierarchy *on, const void *own, const MPI_Count counts[], const MPI_Aint displs[],
                    void *into, const struct shape *shape, int64_t segment);
int reduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int root);
int reduce_scatter_blocks(struct hierarchy *on, const void *from, void *into, const int counts[],
                          const struct shape *shape, MPI_Op op);
int scan_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive);

/* Requires on->in_order. */
int scan_segments(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive, int64_t segment, int ahead);
/* For ranks in any order; requires an operation that commutes. */
int scan_direct(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive);
/* For ranks in any order: every rank receives all ranks' data. */
int scan_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive);

#endif
