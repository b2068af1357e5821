/* Collective operations. Counts the bytes that this rank sends or, in a broadcast or a scatter, those that it
 * receives. */
#define _GNU_SOURCE
#include "messages/counting.h"

/* Sums the bytes that are sent to each of `count` ranks. */
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

/* With MPI_IN_PLACE, the size follows from the arguments of the other direction. */
#define GIVEN (from == MPI_IN_PLACE ? peers_bytes(into_count, into_type) : peers_bytes(count, type))
#define GIVEN_V \
    (from == MPI_IN_PLACE ? peers_bytes(into_counts[own_rank(comm)], into_type) : peers_bytes(count, type))
#define GOTTEN (into == MPI_IN_PLACE ? peers_bytes(count, type) : peers_bytes(into_count, into_type))
#define GOTTEN_V \
    (into == MPI_IN_PLACE ? peers_bytes(counts[own_rank(comm)], type) : peers_bytes(into_count, into_type))
#define TO_ALL(peers)                                                          \
    (from == MPI_IN_PLACE ? SUM(peers, peers_bytes(into_counts[i], into_type)) \
                          : SUM(peers, peers_bytes(counts[i], type)))
#define TO_ALL_W(peers)                                                            \
    (from == MPI_IN_PLACE ? SUM(peers, peers_bytes(into_counts[i], into_types[i])) \
                          : SUM(peers, peers_bytes(counts[i], types[i])))

static int others_of(MPI_Comm comm, int *size) { OTHER("Comm_remote_size", (MPI_Comm, int *), comm, size); }

/* In an intercommunicator, a rank sends to the ranks of the other group. */
static int others(MPI_Comm comm)
{
    int is_inter = 0, size = 0;
    if (real.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || !is_inter)
        return peers_count(comm);
    return others_of(comm, &size) == MPI_SUCCESS ? size : 0;
}

/* In an intercommunicator, `root` is MPI_ROOT at the root and MPI_PROC_NULL at the other ranks of its group,
 * both less than 0. These ranks send nothing to a root, and their other arguments may be anything. */
#define TO_ROOT(bytes) (root < 0 ? 0 : (bytes))
#define FROM_ROOT(bytes) (root == MPI_PROC_NULL ? 0 : (bytes))

#define OPERATION(Name, name, bytes)                        \
    BOTH_COUNTS(Name, Name, operation(#Name, comm, bytes)); \
    BOTH_COUNTS_REQUEST(I##name, Name, operation("I" #name, comm, bytes))
#define NEIGHBOURS(Name, name, bytes)                                                            \
    BOTH_COUNTS(Name, Name, int degree = peers_neighbours(comm); operation(#Name, comm, bytes)); \
    BOTH_COUNTS_REQUEST(I##name, Name, int degree = peers_neighbours(comm); operation("I" #name, comm, bytes))

COUNTED(Barrier, Barrier, operation("Barrier", comm, 0));
COUNTED_REQUEST(Ibarrier, Barrier, operation("Ibarrier", comm, 0));
OPERATION(Bcast, bcast, FROM_ROOT(peers_bytes(count, type)));
OPERATION(Reduce, reduce, TO_ROOT(peers_bytes(count, type)));
OPERATION(Allreduce, allreduce, peers_bytes(count, type));
OPERATION(Scan, scan, peers_bytes(count, type));
OPERATION(Exscan, exscan, peers_bytes(count, type));
OPERATION(Reduce_scatter_block, reduce_scatter_block, peers_bytes(count, type) * peers_count(comm));
OPERATION(Reduce_scatter, reduce_scatter, SUM(peers_count(comm), peers_bytes(counts[i], type)));
OPERATION(Gather, gather, TO_ROOT(GIVEN));
OPERATION(Gatherv, gatherv, TO_ROOT(GIVEN_V));
OPERATION(Scatter, scatter, TO_ROOT(GOTTEN));
OPERATION(Scatterv, scatterv, TO_ROOT(GOTTEN_V));
OPERATION(Allgather, allgather, GIVEN);
OPERATION(Allgatherv, allgatherv, GIVEN_V);
OPERATION(Alltoall, alltoall, GIVEN *others(comm));
OPERATION(Alltoallv, alltoallv, TO_ALL(others(comm)));
OPERATION(Alltoallw, alltoallw, TO_ALL_W(others(comm)));

NEIGHBOURS(Neighbor_allgather, neighbor_allgather, peers_bytes(count, type) * degree);
NEIGHBOURS(Neighbor_allgatherv, neighbor_allgatherv, peers_bytes(count, type) * degree);
NEIGHBOURS(Neighbor_alltoall, neighbor_alltoall, peers_bytes(count, type) * degree);
NEIGHBOURS(Neighbor_alltoallv, neighbor_alltoallv, SUM(degree, peers_bytes(counts[i], type)));
NEIGHBOURS(Neighbor_alltoallw, neighbor_alltoallw, SUM(degree, peers_bytes(counts[i], types[i])));
