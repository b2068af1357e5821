/* What neighbours the ranks of a communicator have. One that spans sites has it in its record; one within a
 * site has the MPI's own. */
#ifndef CAUSEWAY_WORLD_TOPOLOGY_H
#define CAUSEWAY_WORLD_TOPOLOGY_H

#include "common/binding/mpi_calls.h"

struct topology {
    /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH. */
    int kind;
    /* Communicators that have it: duplicates share it. */
    int holders;
    /* A grid: its dimensions. */
    int dimensions, *dims, *periods;
    /* A graph that every rank knows: of each node where its neighbours end, and all neighbours. */
    int nodes, *index, *edges;
    /* A graph: each rank knows its own part. */
    int in, out, is_weighted, *sources, *in_weights, *targets, *out_weights;
};

/* Arrays are copied. NULL where there is no memory. Weights may be NULL. */
struct topology *topology_grid(int dimensions, const int *dims, const int *periods);
struct topology *topology_graph(int nodes, const int *index, const int *edges);
struct topology *topology_part(int in, const int *sources, const int *in_weights, int out, const int *targets,
                               const int *out_weights, int is_weighted);

void topology_hold(struct topology *topology);
/* Does nothing with NULL. */
void topology_release(struct topology *topology);

/* Ranks of a grid in the order of rows. `topology_rank` takes coordinates outside of a periodic dimension;
 * outside of another one it gives MPI_PROC_NULL. */
void topology_coords(const struct topology *grid, int rank, int *coords);
int topology_rank(const struct topology *grid, const int *coords);
/* The rank that lies `by` further in a dimension, or MPI_PROC_NULL. */
int topology_shifted(const struct topology *grid, int rank, int dimension, int by);

/* Where a rank's neighbours of a graph that every rank knows begin, and how many they are. */
const int *topology_neighbors(const struct topology *graph, int rank, int *count);

#endif
