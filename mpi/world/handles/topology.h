/* The topology of a communicator: which neighbours its ranks have. A communicator that spans sites has it in
 * its record; one within a site has the MPI's own. */
#ifndef CAUSEWAY_WORLD_TOPOLOGY_H
#define CAUSEWAY_WORLD_TOPOLOGY_H

#include "common/binding/mpi_calls.h"

struct topology {
    /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH. */
    int kind;
    /* The number of communicators that have it: duplicates share it. */
    int holders;
    /* For a grid: its dimensions. */
    int dimensions, *dims, *periods;
    /* For a graph that every rank knows: where each node's neighbours end, and all neighbours. */
    int nodes, *index, *edges;
    /* For a graph whose ranks each know their own part. */
    int in, out, is_weighted, *sources, *in_weights, *targets, *out_weights;
};

/* These copy the arrays, and return NULL if memory is exhausted. Weights may be NULL. */
struct topology *topology_grid(int dimensions, const int *dims, const int *periods);
struct topology *topology_graph(int nodes, const int *index, const int *edges);
struct topology *topology_part(int in, const int *sources, const int *in_weights, int out, const int *targets,
                               const int *out_weights, int is_weighted);

void topology_hold(struct topology *topology);
/* Does nothing with NULL. */
void topology_release(struct topology *topology);

/* Ranks of a grid are in row-major order. `topology_rank` accepts coordinates outside a periodic dimension;
 * outside any other one it returns MPI_PROC_NULL. */
void topology_coords(const struct topology *grid, int rank, int *coords);
int topology_rank(const struct topology *grid, const int *coords);
/* The rank at a distance of `by` in a dimension, or MPI_PROC_NULL. */
int topology_shifted(const struct topology *grid, int rank, int dimension, int by);

/* Returns the neighbours of a rank in a graph that every rank knows, and how many there are. */
const int *topology_neighbors(const struct topology *graph, int rank, int *count);

#endif
