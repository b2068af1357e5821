/* Collective operations with lists of large counts. */
#define _GNU_SOURCE
#include "world/calls/large.h"

LARGE_LISTS(Gatherv, gatherv, (from, n, type, into, c, p, into_type, root, comm),
            int n = large_sent(&large, from, count, &type),
            many = large_is_root(comm, root) ? large_members(comm) : 0;
            const int *c = large_counts(&large, into_counts, many),
            *p = large_displs(&large, into_displs, many))
LARGE_LISTS(Scatterv, scatterv, (from, c, p, type, into, m, into_type, root, comm),
            int m = large_sent(&large, into, into_count, &into_type),
            many = large_is_root(comm, root) ? large_members(comm) : 0;
            const int *c = large_counts(&large, counts, many), *p = large_displs(&large, displs, many))

#define LARGE_ALLGATHERV(Name, name, entries)                                               \
    LARGE_LISTS(Name, name, (from, n, type, into, c, p, into_type, comm),                   \
                int n = large_sent(&large, from, count, &type);                             \
                int many = entries; const int *c = large_counts(&large, into_counts, many), \
                                    *p = large_displs(&large, into_displs, many))
LARGE_ALLGATHERV(Allgatherv, allgatherv, large_members(comm))
LARGE_ALLGATHERV(Neighbor_allgatherv, neighbor_allgatherv, large_neighbors(comm, FROM))

/* `given` and `gotten` are the numbers of entries of the send and the receive lists. */
#define LARGE_ALLTOALL(Name, name, small_ones, given, gotten)                                               \
    LARGE_LISTS(Name, name, small_ones, int many = given, into_many = gotten;                               \
                const int *c = large_counts(&large, counts, many), *p = large_displs(&large, displs, many), \
                *into_c = large_counts(&large, into_counts, into_many),                                     \
                *into_p = large_displs(&large, into_displs, into_many))
/* With MPI_IN_PLACE a rank sends from its receive buffer, and the send lists are not significant. */
#define GIVEN (from == MPI_IN_PLACE ? 0 : large_members(comm))
LARGE_ALLTOALL(Alltoallv, alltoallv, (from, c, p, type, into, into_c, into_p, into_type, comm), GIVEN,
               large_members(comm))
LARGE_ALLTOALL(Neighbor_alltoallv, neighbor_alltoallv,
               (from, c, p, type, into, into_c, into_p, into_type, comm), large_neighbors(comm, TO),
               large_neighbors(comm, FROM))
LARGE_ALLTOALL(Alltoallw, alltoallw, (from, c, p, types, into, into_c, into_p, into_types, comm), GIVEN,
               large_members(comm))

/* Its displacements are MPI_Aint in both forms. */
LARGE_LISTS(Neighbor_alltoallw, neighbor_alltoallw,
            (from, c, displs, types, into, into_c, into_displs, into_types, comm),
            const int *c = large_counts(&large, counts, large_neighbors(comm, TO)),
            *into_c = large_counts(&large, into_counts, large_neighbors(comm, FROM)))
LARGE_LISTS(Reduce_scatter, reduce_scatter, (from, into, c, type, op, comm),
            const int *c = large_counts(&large, counts, large_own_members(comm)))
