/* Collective operations with large counts. */
#define _GNU_SOURCE
#include "world/calls/large.h"

LARGE_FORMS(Bcast, bcast, (buffer, n, type, root, comm), int n = large_count(&large, count, &type))
LARGE_FORMS(Gather, gather, (from, n, type, into, m, into_type, root, comm),
            int n = large_sent(&large, from, count, &type),
            m = large_is_root(comm, root) ? large_count(&large, into_count, &into_type) : 0)
LARGE_FORMS(Scatter, scatter, (from, n, type, into, m, into_type, root, comm),
            int n = large_is_root(comm, root) ? large_count(&large, count, &type) : 0,
            m = large_sent(&large, into, into_count, &into_type))

/* The same count for each rank, or for each neighbour. */
#define LARGE_EVEN(Name, name)                                         \
    LARGE_FORMS(Name, name, (from, n, type, into, m, into_type, comm), \
                int n = large_sent(&large, from, count, &type),        \
                m = large_count(&large, into_count, &into_type))
LARGE_EVEN(Allgather, allgather)
LARGE_EVEN(Alltoall, alltoall)
LARGE_EVEN(Neighbor_allgather, neighbor_allgather)
LARGE_EVEN(Neighbor_alltoall, neighbor_alltoall)

LARGE_REDUCTION(Reduce, reduce, (from, into, n, type, op, root, comm), int n = large_few(&large, count))
LARGE_REDUCTION(Allreduce, allreduce, (from, into, n, type, op, comm), int n = large_few(&large, count))
LARGE_FORMS(Reduce_scatter_block, reduce_scatter_block, (from, into, n, type, op, comm),
            int n = large_few(&large, count))
LARGE_REDUCTION(Scan, scan, (from, into, n, type, op, comm), int n = large_few(&large, count))
LARGE_REDUCTION(Exscan, exscan, (from, into, n, type, op, comm), int n = large_few(&large, count))
