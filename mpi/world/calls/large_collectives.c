/* Collective operations with large counts. */
#define _GNU_SOURCE
#include "world/calls/large.h"

LARGE_FORMS(Bcast, Ibcast, (void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm),
            (buffer, count, type, root, comm), (buffer, n, type, root, comm),
            int n = large_count(&large, count, &type))
LARGE_FORMS(Gather, Igather,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, MPI_Count in_count,
             MPI_Datatype in_type, int root, MPI_Comm comm),
            (out, out_count, out_type, in, in_count, in_type, root, comm),
            (out, n, out_type, in, m, in_type, root, comm),
            int n = large_sent(&large, out, out_count, &out_type),
            m = large_is_root(comm, root) ? large_count(&large, in_count, &in_type) : 0)
LARGE_FORMS(Scatter, Iscatter,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, MPI_Count in_count,
             MPI_Datatype in_type, int root, MPI_Comm comm),
            (out, out_count, out_type, in, in_count, in_type, root, comm),
            (out, n, out_type, in, m, in_type, root, comm),
            int n = large_is_root(comm, root) ? large_count(&large, out_count, &out_type) : 0,
            m = large_sent(&large, in, in_count, &in_type))
LARGE_FORMS(Allgather, Iallgather,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, MPI_Count in_count,
             MPI_Datatype in_type, MPI_Comm comm),
            (out, out_count, out_type, in, in_count, in_type, comm), (out, n, out_type, in, m, in_type, comm),
            int n = large_sent(&large, out, out_count, &out_type),
            m = large_count(&large, in_count, &in_type))
LARGE_FORMS(Alltoall, Ialltoall,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, MPI_Count in_count,
             MPI_Datatype in_type, MPI_Comm comm),
            (out, out_count, out_type, in, in_count, in_type, comm), (out, n, out_type, in, m, in_type, comm),
            int n = large_sent(&large, out, out_count, &out_type),
            m = large_count(&large, in_count, &in_type))
LARGE_FORMS(Neighbor_allgather, Ineighbor_allgather,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, MPI_Count in_count,
             MPI_Datatype in_type, MPI_Comm comm),
            (out, out_count, out_type, in, in_count, in_type, comm), (out, n, out_type, in, m, in_type, comm),
            int n = large_sent(&large, out, out_count, &out_type),
            m = large_count(&large, in_count, &in_type))
LARGE_FORMS(Neighbor_alltoall, Ineighbor_alltoall,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, MPI_Count in_count,
             MPI_Datatype in_type, MPI_Comm comm),
            (out, out_count, out_type, in, in_count, in_type, comm), (out, n, out_type, in, m, in_type, comm),
            int n = large_sent(&large, out, out_count, &out_type),
            m = large_count(&large, in_count, &in_type))
LARGE_REDUCTION(Reduce, Ireduce,
                (const void *out, void *in, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                 MPI_Comm comm),
                (out, in, count, type, op, root, comm), (out, in, n, type, op, root, comm),
                int n = large_few(&large, count))
LARGE_REDUCTION(Allreduce, Iallreduce,
                (const void *out, void *in, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                (out, in, count, type, op, comm), (out, in, n, type, op, comm),
                int n = large_few(&large, count))
LARGE_FORMS(Reduce_scatter_block, Ireduce_scatter_block,
            (const void *out, void *in, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
            (out, in, count, type, op, comm), (out, in, n, type, op, comm), int n = large_few(&large, count))
LARGE_REDUCTION(Scan, Iscan,
                (const void *out, void *in, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                (out, in, count, type, op, comm), (out, in, n, type, op, comm),
                int n = large_few(&large, count))
LARGE_REDUCTION(Exscan, Iexscan,
                (const void *out, void *in, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                (out, in, count, type, op, comm), (out, in, n, type, op, comm),
                int n = large_few(&large, count))
