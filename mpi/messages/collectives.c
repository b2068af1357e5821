/* Operations of all ranks of a communicator. Bytes are those that this rank gives: of a broadcast and a
 * scatter, those that it gets. */
#define _GNU_SOURCE
#include "messages/counting.h"

#define P_Barrier MPI_Comm comm
#define A_Barrier comm

#define P_Bcast void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm
#define L_Bcast void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm
#define A_Bcast buffer, count, type, root, comm

#define P_Reduce \
    const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm
#define L_Reduce \
    const void *from, void *into, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm
#define A_Reduce from, into, count, type, op, root, comm

#define P_Allreduce const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define L_Allreduce const void *from, void *into, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define A_Allreduce from, into, count, type, op, comm

#define P_Reduce_scatter \
    const void *from, void *into, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define L_Reduce_scatter \
    const void *from, void *into, const MPI_Count counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define A_Reduce_scatter from, into, counts, type, op, comm

/* Gather and scatter with one count at either end, with and without a root. */
#define P_Allgather                                                                               \
    const void *from, int count, MPI_Datatype type, void *into, int room, MPI_Datatype into_type, \
        MPI_Comm comm
#define L_Allgather                                                                   \
    const void *from, MPI_Count count, MPI_Datatype type, void *into, MPI_Count room, \
        MPI_Datatype into_type, MPI_Comm comm
#define A_Allgather from, count, type, into, room, into_type, comm
#define P_Gather                                                                                            \
    const void *from, int count, MPI_Datatype type, void *into, int room, MPI_Datatype into_type, int root, \
        MPI_Comm comm
#define L_Gather                                                                      \
    const void *from, MPI_Count count, MPI_Datatype type, void *into, MPI_Count room, \
        MPI_Datatype into_type, int root, MPI_Comm comm
#define A_Gather from, count, type, into, room, into_type, root, comm

#define P_Allgatherv                                                                               \
    const void *from, int count, MPI_Datatype type, void *into, const int rooms[], const int at[], \
        MPI_Datatype into_type, MPI_Comm comm
#define L_Allgatherv                                                                           \
    const void *from, MPI_Count count, MPI_Datatype type, void *into, const MPI_Count rooms[], \
        const MPI_Aint at[], MPI_Datatype into_type, MPI_Comm comm
#define A_Allgatherv from, count, type, into, rooms, at, into_type, comm
#define P_Gatherv                                                                                  \
    const void *from, int count, MPI_Datatype type, void *into, const int rooms[], const int at[], \
        MPI_Datatype into_type, int root, MPI_Comm comm
#define L_Gatherv                                                                              \
    const void *from, MPI_Count count, MPI_Datatype type, void *into, const MPI_Count rooms[], \
        const MPI_Aint at[], MPI_Datatype into_type, int root, MPI_Comm comm
#define A_Gatherv from, count, type, into, rooms, at, into_type, root, comm

#define P_Scatterv                                                                                 \
    const void *from, const int counts[], const int at[], MPI_Datatype type, void *into, int room, \
        MPI_Datatype into_type, int root, MPI_Comm comm
#define L_Scatterv                                                                                  \
    const void *from, const MPI_Count counts[], const MPI_Aint at[], MPI_Datatype type, void *into, \
        MPI_Count room, MPI_Datatype into_type, int root, MPI_Comm comm
#define A_Scatterv from, counts, at, type, into, room, into_type, root, comm

#define P_Alltoallv                                                                                         \
    const void *from, const int counts[], const int at[], MPI_Datatype type, void *into, const int rooms[], \
        const int into_at[], MPI_Datatype into_type, MPI_Comm comm
#define L_Alltoallv                                                                                 \
    const void *from, const MPI_Count counts[], const MPI_Aint at[], MPI_Datatype type, void *into, \
        const MPI_Count rooms[], const MPI_Aint into_at[], MPI_Datatype into_type, MPI_Comm comm
#define A_Alltoallv from, counts, at, type, into, rooms, into_at, into_type, comm

#define P_Alltoallw                                                                               \
    const void *from, const int counts[], const int at[], const MPI_Datatype types[], void *into, \
        const int rooms[], const int into_at[], const MPI_Datatype into_types[], MPI_Comm comm
#define L_Alltoallw                                                                                          \
    const void *from, const MPI_Count counts[], const MPI_Aint at[], const MPI_Datatype types[], void *into, \
        const MPI_Count rooms[], const MPI_Aint into_at[], const MPI_Datatype into_types[], MPI_Comm comm
#define A_Alltoallw from, counts, at, types, into, rooms, into_at, into_types, comm
/* Among neighbours displacements are addresses. */
#define P_Neighbours_w                                                                                 \
    const void *from, const int counts[], const MPI_Aint at[], const MPI_Datatype types[], void *into, \
        const int rooms[], const MPI_Aint into_at[], const MPI_Datatype into_types[], MPI_Comm comm
#define L_Neighbours_w L_Alltoallw
#define A_Neighbours_w A_Alltoallw

/* Sums of what is given to each of so many ranks. */
#define SUM(count, bytes_to)                         \
    ({                                               \
        int64_t sum = 0;                             \
        for (int i = 0, end = (count); i < end; i++) \
            sum += bytes_to;                         \
        sum;                                         \
    })

static int own_rank(MPI_Comm comm)
{
    int rank = 0;
    return real.Comm_rank(comm, &rank) == MPI_SUCCESS ? rank : 0;
}

static void operation(const char *call, MPI_Comm comm, int64_t bytes)
{
    counts_add(call, NO_RANK, peers_count(comm), bytes);
}

/* A rank that has its part in place says so in place of what it gives, or gets. */
#define GIVEN (from == MPI_IN_PLACE ? peers_bytes(room, into_type) : peers_bytes(count, type))
#define GIVEN_V \
    (from == MPI_IN_PLACE ? peers_bytes(rooms[own_rank(comm)], into_type) : peers_bytes(count, type))
#define GOTTEN (into == MPI_IN_PLACE ? peers_bytes(count, type) : peers_bytes(room, into_type))
#define GOTTEN_V \
    (into == MPI_IN_PLACE ? peers_bytes(counts[own_rank(comm)], type) : peers_bytes(room, into_type))
#define TO_ALL(peers)                                                    \
    (from == MPI_IN_PLACE ? SUM(peers, peers_bytes(rooms[i], into_type)) \
                          : SUM(peers, peers_bytes(counts[i], type)))
#define TO_ALL_W(peers)                                                      \
    (from == MPI_IN_PLACE ? SUM(peers, peers_bytes(rooms[i], into_types[i])) \
                          : SUM(peers, peers_bytes(counts[i], types[i])))

static int others_of(MPI_Comm comm, int *size) { OTHER("Comm_remote_size", (MPI_Comm, int *), comm, size); }

/* A rank of an intercommunicator gives to those of the other group. */
static int others(MPI_Comm comm)
{
    int is_inter = 0, size = 0;
    if (real.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || !is_inter)
        return peers_count(comm);
    return others_of(comm, &size) == MPI_SUCCESS ? size : 0;
}

/* In an intercommunicator the root is MPI_ROOT at itself and MPI_PROC_NULL beside it, both less than 0. These
 * ranks give nothing to a root, and their other arguments may be anything. */
#define TO_ROOT(bytes) (root < 0 ? 0 : (bytes))
#define FROM_ROOT(bytes) (root == MPI_PROC_NULL ? 0 : (bytes))

#define OPERATION(Name, name, bytes)                        \
    BOTH_COUNTS(Name, Name, operation(#Name, comm, bytes)); \
    BOTH_COUNTS_REQUEST(I##name, Name, operation("I" #name, comm, bytes))
/* The same with the parameters of another one. */
#define OPERATION_LIKE(Name, name, Like, bytes)             \
    BOTH_COUNTS(Name, Like, operation(#Name, comm, bytes)); \
    BOTH_COUNTS_REQUEST(I##name, Like, operation("I" #name, comm, bytes))
#define NEIGHBOURS(Name, name, Like, bytes)                                                      \
    BOTH_COUNTS(Name, Like, int degree = peers_neighbours(comm); operation(#Name, comm, bytes)); \
    BOTH_COUNTS_REQUEST(I##name, Like, int degree = peers_neighbours(comm); operation("I" #name, comm, bytes))

COUNTED(Barrier, Barrier, operation("Barrier", comm, 0));
COUNTED_REQUEST(Ibarrier, Barrier, operation("Ibarrier", comm, 0));
OPERATION(Bcast, bcast, FROM_ROOT(peers_bytes(count, type)));
OPERATION(Reduce, reduce, TO_ROOT(peers_bytes(count, type)));
OPERATION(Allreduce, allreduce, peers_bytes(count, type));
OPERATION_LIKE(Scan, scan, Allreduce, peers_bytes(count, type));
OPERATION_LIKE(Exscan, exscan, Allreduce, peers_bytes(count, type));
OPERATION_LIKE(Reduce_scatter_block, reduce_scatter_block, Allreduce,
               peers_bytes(count, type) * peers_count(comm));
OPERATION(Reduce_scatter, reduce_scatter, SUM(peers_count(comm), peers_bytes(counts[i], type)));
OPERATION(Gather, gather, TO_ROOT(GIVEN));
OPERATION(Gatherv, gatherv, TO_ROOT(GIVEN_V));
OPERATION_LIKE(Scatter, scatter, Gather, TO_ROOT(GOTTEN));
OPERATION(Scatterv, scatterv, TO_ROOT(GOTTEN_V));
OPERATION(Allgather, allgather, GIVEN);
OPERATION(Allgatherv, allgatherv, GIVEN_V);
OPERATION_LIKE(Alltoall, alltoall, Allgather, GIVEN *others(comm));
OPERATION(Alltoallv, alltoallv, TO_ALL(others(comm)));
OPERATION(Alltoallw, alltoallw, TO_ALL_W(others(comm)));

NEIGHBOURS(Neighbor_allgather, neighbor_allgather, Allgather, peers_bytes(count, type) * degree);
NEIGHBOURS(Neighbor_allgatherv, neighbor_allgatherv, Allgatherv, peers_bytes(count, type) * degree);
NEIGHBOURS(Neighbor_alltoall, neighbor_alltoall, Allgather, peers_bytes(count, type) * degree);
NEIGHBOURS(Neighbor_alltoallv, neighbor_alltoallv, Alltoallv, SUM(degree, peers_bytes(counts[i], type)));
NEIGHBOURS(Neighbor_alltoallw, neighbor_alltoallw, Neighbours_w,
           SUM(degree, peers_bytes(counts[i], types[i])));
