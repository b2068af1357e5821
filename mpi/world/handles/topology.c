#include "world/handles/topology.h"

#include <stdlib.h>
#include <string.h>

/* Allocates a topology, followed by room for `numbers` ints. */
static struct topology *make(int kind, size_t numbers, int **room)
{
    struct topology *topology = calloc(1, sizeof *topology + numbers * sizeof **room);
    if (!topology)
        return NULL;
    topology->kind = kind;
    topology->holders = 1;
    *room = (int *)(topology + 1);
    return topology;
}

/* Copies an array into the room, and advances that. */
static int *put(int **room, const int *numbers, int count)
{
    int *copy = *room;
    if (count > 0 && numbers)
        memcpy(copy, numbers, (size_t)count * sizeof *copy);
    *room += count;
    return copy;
}

struct topology *topology_grid(int dimensions, const int *dims, const int *periods)
{
    int *room;
    struct topology *topology = make(MPI_CART, 2 * (size_t)dimensions, &room);
    if (!topology)
        return NULL;
    topology->dimensions = dimensions;
    topology->dims = put(&room, dims, dimensions);
    topology->periods = put(&room, periods, dimensions);
    return topology;
}

struct topology *topology_graph(int nodes, const int *index, const int *edges)
{
    int *room, count = nodes ? index[nodes - 1] : 0;
    struct topology *topology = make(MPI_GRAPH, (size_t)nodes + (size_t)count, &room);
    if (!topology)
        return NULL;
    topology->nodes = nodes;
    topology->index = put(&room, index, nodes);
    topology->edges = put(&room, edges, count);
    return topology;
}

struct topology *topology_part(int in, const int *sources, const int *in_weights, int out, const int *targets,
                               const int *out_weights, int is_weighted)
{
    int *room;
    struct topology *topology = make(MPI_DIST_GRAPH, 2 * ((size_t)in + (size_t)out), &room);
    if (!topology)
        return NULL;
    topology->in = in;
    topology->out = out;
    topology->is_weighted = is_weighted;
    topology->sources = put(&room, sources, in);
    topology->in_weights = put(&room, in_weights, in);
    topology->targets = put(&room, targets, out);
    topology->out_weights = put(&room, out_weights, out);
    return topology;
}

void topology_hold(struct topology *topology)
{
    if (topology)
        topology->holders++;
}

void topology_release(struct topology *topology)
{
    if (topology && --topology->holders == 0)
        free(topology);
}

void topology_coords(const struct topology *grid, int rank, int *coords)
{
    for (int i = grid->dimensions - 1; i >= 0; i--) {
        coords[i] = rank % grid->dims[i];
        rank /= grid->dims[i];
    }
}

int topology_rank(const struct topology *grid, const int *coords)
{
    int rank = 0;
    for (int i = 0; i < grid->dimensions; i++) {
        int at = coords[i];
        if (at < 0 || at >= grid->dims[i]) {
            if (!grid->periods[i])
                return MPI_PROC_NULL;
            at = (at % grid->dims[i] + grid->dims[i]) % grid->dims[i];
        }
        rank = rank * grid->dims[i] + at;
    }
    return rank;
}

int topology_shifted(const struct topology *grid, int rank, int dimension, int by)
{
    int stride = 1;
    for (int i = grid->dimensions - 1; i > dimension; i--)
        stride *= grid->dims[i];
    int size = grid->dims[dimension], at = rank / stride % size;
    long long to = (long long)at + by;
    if ((to < 0 || to >= size) && !grid->periods[dimension])
        return MPI_PROC_NULL;
    to = (to % size + size) % size;
    return rank + ((int)to - at) * stride;
}

const int *topology_neighbors(const struct topology *graph, int rank, int *count)
{
    int first = rank > 0 ? graph->index[rank - 1] : 0;
    *count = graph->index[rank] - first;
    return graph->edges + first;
}
