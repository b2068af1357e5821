/* Collective operations with lists of large counts. */
#define _GNU_SOURCE
#include "world/calls/large.h"

LARGE_LISTS(Gatherv, Igatherv,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, const MPI_Count counts[],
             const MPI_Aint starts[], MPI_Datatype in_type, int root, MPI_Comm comm),
            (out, out_count, out_type, in, counts, starts, in_type, root, comm),
            (out, n, out_type, in, c, s, in_type, root, comm),
            int n = large_sent(&large, out, out_count, &out_type),
            many = large_is_root(comm, root) ? large_members(comm) : 0;
            const int *c = large_counts(&large, counts, many), *s = large_places(&large, starts, many))
LARGE_LISTS(Scatterv, Iscatterv,
            (const void *out, const MPI_Count counts[], const MPI_Aint starts[], MPI_Datatype out_type,
             void *in, MPI_Count in_count, MPI_Datatype in_type, int root, MPI_Comm comm),
            (out, counts, starts, out_type, in, in_count, in_type, root, comm),
            (out, c, s, out_type, in, m, in_type, root, comm),
            int m = large_sent(&large, in, in_count, &in_type),
            many = large_is_root(comm, root) ? large_members(comm) : 0;
            const int *c = large_counts(&large, counts, many), *s = large_places(&large, starts, many))
LARGE_LISTS(Allgatherv, Iallgatherv,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, const MPI_Count counts[],
             const MPI_Aint starts[], MPI_Datatype in_type, MPI_Comm comm),
            (out, out_count, out_type, in, counts, starts, in_type, comm),
            (out, n, out_type, in, c, s, in_type, comm),
            int n = large_sent(&large, out, out_count, &out_type);
            int many = large_members(comm);
            const int *c = large_counts(&large, counts, many), *s = large_places(&large, starts, many))
LARGE_LISTS(Neighbor_allgatherv, Ineighbor_allgatherv,
            (const void *out, MPI_Count out_count, MPI_Datatype out_type, void *in, const MPI_Count counts[],
             const MPI_Aint starts[], MPI_Datatype in_type, MPI_Comm comm),
            (out, out_count, out_type, in, counts, starts, in_type, comm),
            (out, n, out_type, in, c, s, in_type, comm),
            int n = large_sent(&large, out, out_count, &out_type);
            int many = large_neighbors(comm, FROM);
            const int *c = large_counts(&large, counts, many), *s = large_places(&large, starts, many))
LARGE_LISTS(Alltoallv, Ialltoallv,
            (const void *out, const MPI_Count out_counts[], const MPI_Aint out_starts[],
             MPI_Datatype out_type, void *in, const MPI_Count in_counts[], const MPI_Aint in_starts[],
             MPI_Datatype in_type, MPI_Comm comm),
            (out, out_counts, out_starts, out_type, in, in_counts, in_starts, in_type, comm),
            (out, oc, os, out_type, in, ic, is, in_type, comm),
            int to = out == MPI_IN_PLACE ? 0 : large_members(comm), from = large_members(comm);
            const int *oc = large_counts(&large, out_counts, to), *os = large_places(&large, out_starts, to),
            *ic = large_counts(&large, in_counts, from), *is = large_places(&large, in_starts, from))
LARGE_LISTS(Neighbor_alltoallv, Ineighbor_alltoallv,
            (const void *out, const MPI_Count out_counts[], const MPI_Aint out_starts[],
             MPI_Datatype out_type, void *in, const MPI_Count in_counts[], const MPI_Aint in_starts[],
             MPI_Datatype in_type, MPI_Comm comm),
            (out, out_counts, out_starts, out_type, in, in_counts, in_starts, in_type, comm),
            (out, oc, os, out_type, in, ic, is, in_type, comm), int to = large_neighbors(comm, TO),
            from = large_neighbors(comm, FROM);
            const int *oc = large_counts(&large, out_counts, to), *os = large_places(&large, out_starts, to),
            *ic = large_counts(&large, in_counts, from), *is = large_places(&large, in_starts, from))
LARGE_LISTS(Alltoallw, Ialltoallw,
            (const void *out, const MPI_Count out_counts[], const MPI_Aint out_starts[],
             const MPI_Datatype out_types[], void *in, const MPI_Count in_counts[],
             const MPI_Aint in_starts[], const MPI_Datatype in_types[], MPI_Comm comm),
            (out, out_counts, out_starts, out_types, in, in_counts, in_starts, in_types, comm),
            (out, oc, os, out_types, in, ic, is, in_types, comm), int from = large_members(comm),
            to = out == MPI_IN_PLACE ? 0 : from;
            const int *oc = large_counts(&large, out_counts, to), *os = large_places(&large, out_starts, to),
            *ic = large_counts(&large, in_counts, from), *is = large_places(&large, in_starts, from))
LARGE_LISTS(Neighbor_alltoallw, Ineighbor_alltoallw,
            (const void *out, const MPI_Count out_counts[], const MPI_Aint out_starts[],
             const MPI_Datatype out_types[], void *in, const MPI_Count in_counts[],
             const MPI_Aint in_starts[], const MPI_Datatype in_types[], MPI_Comm comm),
            (out, out_counts, out_starts, out_types, in, in_counts, in_starts, in_types, comm),
            (out, oc, out_starts, out_types, in, ic, in_starts, in_types, comm),
            const int *oc = large_counts(&large, out_counts, large_neighbors(comm, TO)),
            *ic = large_counts(&large, in_counts, large_neighbors(comm, FROM)))
LARGE_LISTS(Reduce_scatter, Ireduce_scatter,
            (const void *out, void *in, const MPI_Count counts[], MPI_Datatype type, MPI_Op op,
             MPI_Comm comm),
            (out, in, counts, type, op, comm), (out, in, c, type, op, comm),
            const int *c = large_counts(&large, counts, large_own_members(comm)))
