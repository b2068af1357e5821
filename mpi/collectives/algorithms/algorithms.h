/* The algorithms of all operations, one a file. Each file's head says what its algorithm costs, with these
 * letters: R round trip between sites, B rate between sites, s bytes of one rank's part, S sites, n ranks of
 * a site. What is done inside a site is left to the MPI's own collectives, on the communicator of the site's
 * ranks, except where pieces follow each other (local_reduction.h).
 *
 * Arguments are as in MPI and have been checked: counts are not negative and roots exist. MPI_IN_PLACE has
 * been replaced by what it stands for, or is handed on where it says more. */
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
/* Goes by way of the site `hub`. */
int allreduce_hub(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int hub, int64_t segment);
/* Goes by way of the site `hub`, or of none where that is -1. */
int allreduce_split(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int hub, int64_t segment);
/* Rank i gets a block of counts[i] elements. */
int reduce_scatter_leaders(struct hierarchy *on, const void *from, void *into, const int counts[],
                           const struct shape *shape, MPI_Op op);

int reduce_scatter_multi_leader(struct hierarchy *on, const void *from, void *into, const int counts[],
                                const struct shape *shape, MPI_Op op, int64_t segment);

/* Every rank's bytes go to the root. There `room` gets `length` bytes of each rank, in the order of
 * on->members. */
int gather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room, int root);
int gather_direct(struct hierarchy *on, const void *from, MPI_Count count, MPI_Datatype type, void *into,
                  const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype into_type, int root);
int scatter_leaders(struct hierarchy *on, const char *room, int64_t length, char *into, int root);
int scatter_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint displs[],
                   MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, int root);

/* Every rank's bytes go to all. `room` gets them in the order of on->members. */
int allgather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room);
/* Rank on->members[i] has lengths[i] bytes, which lie in `room` at room_at[i]. A rank's own are there
 * already. */
int allgather_multi_leader(struct hierarchy *on, const int64_t lengths[], const int64_t room_at[], char *room,
                           int64_t segment);

/* Each rank has `length` bytes for each rank, all in the order of on->members. */
int alltoall_leaders(struct hierarchy *on, const char *from, int64_t length, char *into);
/* Places are in bytes. */
int alltoall_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint displs[],
                    const MPI_Datatype types[], void *into, const MPI_Count into_counts[],
                    const MPI_Aint into_displs[], const MPI_Datatype into_types[]);

/* These add up in the order of ranks, whatever the operation and the placement. A root of -1 means
 * everybody. */
int reduce_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int root);
int allreduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                     MPI_Op op, int64_t segment);
/* Every rank's block goes to everybody: rank i's has counts[i] elements and begins at byte displs[i]. A
 * rank's own may be there already. */
int hand_out_blocks(struct hierarchy *on, const void *own, const MPI_Count counts[], const MPI_Aint displs[],
                    void *into, const struct shape *shape, int64_t segment);
int reduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int root);
int reduce_scatter_blocks(struct hierarchy *on, const void *from, void *into, const int counts[],
                          const struct shape *shape, MPI_Op op);
int scan_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive);

/* This one is for on->in_order alone. */
int scan_segments(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive, int64_t segment, int ahead);
/* This one is for ranks in any order, where the operation commutes. */
int scan_direct(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive);
/* This one is for ranks in any order: everybody gets everything. */
int scan_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive);

#endif
