/* Distributed graphs over sites: each rank names some edges. */
#define _GNU_SOURCE
#include "world/basic/basic.h"
#include "world/calls/check.h"
#include "world/calls/making.h"
#include "world/calls/shaping.h"
#include "world/native/native.h"

#include <stdlib.h>

static const struct topology *part_of(MPI_Comm comm)
{
    const struct comm *on = comm_find(comm);
    return on && on->topology && on->topology->kind == MPI_DIST_GRAPH ? on->topology : NULL;
}

/* Whether weights are given. MPICH's constants are variables of its library. */
static int has_weights(const int *weights)
{
#if defined(MPI_UNWEIGHTED)
    return weights != MPI_UNWEIGHTED;
#else
    int *const *unweighted = mpi_calls_object("MPI_UNWEIGHTED");
    return !unweighted || weights != *unweighted;
#endif
}

static int are_ranks(const struct comm *on, int count, const int *ranks)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= on->size)
            return 0;
    return count >= 0;
}

/* Makes a communicator of the same processes, with this rank's part of a graph. */
static int make(struct comm *on, struct topology *part, MPI_Comm *made)
{
    int status = making_split(on, 0, on->rank, made);
    if (status == MPI_SUCCESS)
        status = shaping_record(*made, part);
    else
        topology_release(part);
    return status;
}

EXPORT int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int sources[], const int in_weights[],
                                          int out, const int targets[], const int out_weights[],
                                          MPI_Info info, int reorder, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on) {
        if (ours.is_on)
            native_meet(comm);
        OTHER("Dist_graph_create_adjacent",
              (MPI_Comm, int, const int *, const int *, int, const int *, const int *, MPI_Info, int,
               MPI_Comm *),
              comm, in, sources, in_weights, out, targets, out_weights, info, reorder, made);
    }
    NEEDS(on, made && (in <= 0 || sources) && (out <= 0 || targets));
    if (on->local)
        return comm_error(on, MPI_ERR_COMM);
    if (!are_ranks(on, in, sources) || !are_ranks(on, out, targets))
        return comm_error(on, MPI_ERR_ARG);
    int is_weighted = has_weights(in_weights);
    struct topology *part = topology_part(in, sources, is_weighted ? in_weights : NULL, out, targets,
                                          is_weighted ? out_weights : NULL, is_weighted);
    return comm_error(on, make(on, part, made));
}
BOTH(Dist_graph_create_adjacent);

struct edge {
    int from, to, weight;
};
enum { EDGE_INTS = sizeof(struct edge) / sizeof(int) };

/* Collects the edges that all ranks have named, in the order of ranks. */
static int learn_edges(struct comm *on, const struct edge *mine, int count, struct edge **all, int *total)
{
    int *counts = calloc(2 * (size_t)on->size, sizeof *counts), own = count * EDGE_INTS;
    struct blocks blocks;
    MPI_Datatype number = handle.types[TYPE_INT];
    int status = counts ? blocks_even(&blocks, counts, 1, number) : MPI_ERR_NO_MEM;
    TRY(status, basic_allgather(on->hidden, &own, 1, number, &blocks));
    int64_t sum = 0;
    for (int i = 0; status == MPI_SUCCESS && i < on->size; i++) {
        counts[on->size + i] = (int)sum;
        sum += counts[i];
    }
    if (status == MPI_SUCCESS && sum > INT32_MAX)
        status = MPI_ERR_COUNT;
    *all = status == MPI_SUCCESS ? malloc((size_t)sum * sizeof(int) + 1) : NULL;
    if (status == MPI_SUCCESS && !*all)
        status = MPI_ERR_NO_MEM;
    TRY(status, blocks_listed(&blocks, *all, counts, counts + on->size, number));
    TRY(status, basic_allgather(on->hidden, mine, own, number, &blocks));
    *total = (int)(sum / EDGE_INTS);
    free(counts);
    return status;
}

/* Extracts this rank's part from all edges. */
static struct topology *part_from(const struct comm *on, const struct edge *all, int total, int is_weighted)
{
    int *lists = malloc(4 * (size_t)total * sizeof *lists + 1), in = 0, out = 0;
    if (!lists)
        return NULL;
    int *sources = lists, *in_weights = lists + total, *targets = lists + 2 * total,
        *out_weights = lists + 3 * total;
    for (int i = 0; i < total; i++) {
        if (all[i].to == on->rank) {
            sources[in] = all[i].from;
            in_weights[in++] = all[i].weight;
        }
        if (all[i].from == on->rank) {
            targets[out] = all[i].to;
            out_weights[out++] = all[i].weight;
        }
    }
    struct topology *part = topology_part(in, sources, in_weights, out, targets, out_weights, is_weighted);
    free(lists);
    return part;
}

static struct edge *own_edges(int n, const int *sources, const int *degrees, const int *targets,
                              const int *weights, int *count)
{
    *count = 0;
    for (int i = 0; i < n; i++)
        *count += degrees[i];
    struct edge *edges = malloc((size_t)*count * sizeof *edges + 1);
    for (int i = 0, at = 0; edges && i < n; i++)
        for (int k = 0; k < degrees[i]; k++, at++)
            edges[at] = (struct edge){sources[i], targets[at], weights ? weights[at] : 1};
    return edges;
}

EXPORT int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                                 const int targets[], const int weights[], MPI_Info info, int reorder,
                                 MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on) {
        if (ours.is_on)
            native_meet(comm);
        OTHER("Dist_graph_create",
              (MPI_Comm, int, const int *, const int *, const int *, const int *, MPI_Info, int, MPI_Comm *),
              comm, n, sources, degrees, targets, weights, info, reorder, made);
    }
    NEEDS(on, made && (n <= 0 || (sources && degrees)));
    if (on->local)
        return comm_error(on, MPI_ERR_COMM);
    int count, total = 0, is_weighted = has_weights(weights);
    struct edge *all = NULL,
                *mine = own_edges(n, sources, degrees, targets, is_weighted ? weights : NULL, &count);
    int status = mine ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (status == MPI_SUCCESS && (!are_ranks(on, n, sources) || !are_ranks(on, count, targets)))
        status = MPI_ERR_ARG;
    TRY(status, learn_edges(on, mine, count, &all, &total));
    TRY(status, make(on, part_from(on, all, total, is_weighted), made));
    free(all);
    free(mine);
    return comm_error(on, status);
}
BOTH(Dist_graph_create);

EXPORT int MPI_Dist_graph_neighbors_count(MPI_Comm comm, int *in, int *out, int *is_weighted)
{
    const struct comm *on = comm_find(comm);
    const struct topology *part = part_of(comm);
    if (!on)
        OTHER("Dist_graph_neighbors_count", (MPI_Comm, int *, int *, int *), comm, in, out, is_weighted);
    if (!part)
        return comm_error(on, MPI_ERR_TOPOLOGY);
    NEEDS(on, in && out && is_weighted);
    *in = part->in;
    *out = part->out;
    *is_weighted = part->is_weighted;
    return MPI_SUCCESS;
}
BOTH(Dist_graph_neighbors_count);

static void copy(int most, int count, const int *from, int *to)
{
    for (int i = 0; i < most && i < count; i++)
        to[i] = from[i];
}

EXPORT int MPI_Dist_graph_neighbors(MPI_Comm comm, int most_in, int sources[], int in_weights[], int most_out,
                                    int targets[], int out_weights[])
{
    const struct comm *on = comm_find(comm);
    const struct topology *part = part_of(comm);
    if (!on)
        OTHER("Dist_graph_neighbors", (MPI_Comm, int, int *, int *, int, int *, int *), comm, most_in,
              sources, in_weights, most_out, targets, out_weights);
    if (!part)
        return comm_error(on, MPI_ERR_TOPOLOGY);
    NEEDS(on, (sources || most_in <= 0) && (targets || most_out <= 0));
    copy(most_in, part->in, part->sources, sources);
    copy(most_out, part->out, part->targets, targets);
    if (part->is_weighted && has_weights(in_weights))
        copy(most_in, part->in, part->in_weights, in_weights);
    if (part->is_weighted && has_weights(out_weights))
        copy(most_out, part->out, part->out_weights, out_weights);
    return MPI_SUCCESS;
}
BOTH(Dist_graph_neighbors);
