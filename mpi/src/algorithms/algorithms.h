/* One algorithm for each operation and kind of size; each file's head says what it costs, with these letters:
 * R round trip between sites, B rate between sites, s bytes of one rank's part, S sites, n ranks of a site.
 * What is done inside a site is left to the MPI's own collectives, on the communicator of the site's ranks,
 * but where pieces follow each other (local_reduction.h).
 *
 * Arguments are as in MPI, already looked at: counts are not negative, roots exist, MPI_IN_PLACE has been
 * taken care of by `from` being what MPI says it stands for, or is handed on where that says more. */
#ifndef CAUSEWAY_ALGORITHMS_H
#define CAUSEWAY_ALGORITHMS_H

#include "topology/hierarchy.h"
#include "transfer/datatype.h"

int barrier_leaders(struct hierarchy *on);

int bcast_segments(struct hierarchy *on, void *buffer, int count, const struct shape *shape, int root,
                   int64_t segment);

int reduce_segments(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int root, int64_t segment);
int allreduce_segments(struct hierarchy *on, const void *from, void *into, int count,
                       const struct shape *shape, MPI_Op op, int64_t segment, int ahead);
int allreduce_multi_leader(struct hierarchy *on, const void *from, void *into, int count,
                           const struct shape *shape, MPI_Op op, int64_t segment, int ahead);
/* By way of one site. */
int allreduce_hub(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int hub, int64_t segment);
/* By way of one site, or of none with a hub of -1. */
int allreduce_split(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int hub, int64_t segment);
/* Blocks of counts[i] elements for rank i. */
int reduce_scatter_leaders(struct hierarchy *on, const void *from, void *into, const int counts[],
                           const struct shape *shape, MPI_Op op);

int reduce_scatter_multi_leader(struct hierarchy *on, const void *from, void *into, const int counts[],
                                const struct shape *shape, MPI_Op op, int64_t segment);

/* Every rank's bytes to the root: room holds, at the root, `length` bytes of each rank in the order of
 * on->members. */
int gather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room, int root);
int gather_direct(struct hierarchy *on, const void *from, MPI_Count count, MPI_Datatype type, void *into,
                  const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype into_type, int root);
int scatter_leaders(struct hierarchy *on, const char *room, int64_t length, char *into, int root);
int scatter_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint places[],
                   MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, int root);

/* Every rank's bytes to all: room gets them in the order of on->members. */
int allgather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room);
/* lengths[] and room_at[], where each part lies in room, in the order of on->members; one's own is there. */
int allgather_multi_leader(struct hierarchy *on, const int64_t lengths[], const int64_t room_at[], char *room,
                           int64_t segment);

/* Of each rank `length` bytes for each rank, all in the order of on->members. */
int alltoall_leaders(struct hierarchy *on, const char *from, int64_t length, char *into);
/* Places in bytes. */
int alltoall_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint places[],
                    const MPI_Datatype types[], void *into, const MPI_Count into_counts[],
                    const MPI_Aint into_places[], const MPI_Datatype into_types[]);

/* Everything in the order of ranks, whatever the operation and the placement. A root of -1: everybody. */
int reduce_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int root);
int allreduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                     MPI_Op op, int64_t segment);
/* Every rank's block to everybody: counts[i] elements of rank i at places[i] bytes; one's own may be
 * there. */
int hand_out_blocks(struct hierarchy *on, const void *own, const MPI_Count counts[], const MPI_Aint places[],
                    void *into, const struct shape *shape, int64_t segment);
int reduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int root);
int reduce_scatter_blocks(struct hierarchy *on, const void *from, void *into, const int counts[],
                          const struct shape *shape, MPI_Op op);
int scan_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive);

/* Only where on->in_order. */
int scan_segments(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive, int64_t segment, int ahead);
/* Any order, where the operation commutes. */
int scan_direct(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive);
/* Any order, by way of everything everywhere. */
int scan_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive);

#endif
