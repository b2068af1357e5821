/* Grids, graphs and operations among neighbours, and communicators of a group, over sites that each run their
 * own MPI. Every value that arrives says where it comes from. */
#include "world_test.h"

enum { MOST = 64 };

/* Slot i must hold what its sender put into its own slot `theirs`. */
static int value(int sender, int slot) { return 1000 * sender + slot; }

/* Open MPI 4.1.4 alone mixes up the two neighbours of a ring of two in its forms that do not wait, so these
 * are tried over sites only. */
static void exchange_in_grid(MPI_Comm grid, int dimensions, int waits)
{
    int me, out[MOST], in[MOST], gathered[MOST];
    MPI_Request requests[2];
    MPI_Comm_rank(grid, &me);
    for (int i = 0; i < 2 * dimensions; i++) {
        out[i] = value(me, i);
        in[i] = gathered[i] = -1;
    }
    if (waits) {
        CHECK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid) == MPI_SUCCESS);
        CHECK(MPI_Neighbor_allgather(&me, 1, MPI_INT, gathered, 1, MPI_INT, grid) == MPI_SUCCESS);
    } else {
        CHECK(MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid, &requests[0]) == MPI_SUCCESS);
        CHECK(MPI_Ineighbor_allgather(&me, 1, MPI_INT, gathered, 1, MPI_INT, grid, &requests[1]) ==
              MPI_SUCCESS);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    for (int d = 0; d < dimensions; d++) {
        int below, above;
        MPI_Cart_shift(grid, d, 1, &below, &above);
        /* What comes from below was sent upwards. */
        CHECK(in[2 * d] == (below == MPI_PROC_NULL ? -1 : value(below, 2 * d + 1)));
        CHECK(in[2 * d + 1] == (above == MPI_PROC_NULL ? -1 : value(above, 2 * d)));
        CHECK(gathered[2 * d] == (below == MPI_PROC_NULL ? -1 : below));
        CHECK(gathered[2 * d + 1] == (above == MPI_PROC_NULL ? -1 : above));
    }
}

static void try_grid(int dimensions, int periodic)
{
    int dims[3] = {0}, periods[3] = {periodic, 0, periodic}, got[3], round[3], coords[3], count, kind, me;
    MPI_Comm grid, part, copy;
    MPI_Dims_create(size, dimensions, dims);
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 1, &grid) == MPI_SUCCESS);
    MPI_Topo_test(grid, &kind);
    MPI_Cartdim_get(grid, &count);
    CHECK(kind == MPI_CART && count == dimensions);
    MPI_Comm_rank(grid, &me);
    MPI_Cart_get(grid, 3, got, round, coords);
    int again = -1;
    MPI_Cart_rank(grid, coords, &again);
    CHECK(again == me);
    for (int i = 0; i < dimensions; i++)
        CHECK(got[i] == dims[i] && !round[i] == !periods[i]);
    exchange_in_grid(grid, dimensions, 1);
    MPI_Comm_dup(grid, &copy);
    exchange_in_grid(copy, dimensions, 0);
    MPI_Comm_free(&copy);
    MPI_Request request;
    MPI_Comm_idup(grid, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    exchange_in_grid(copy, dimensions, 0);
    /* Rows, which may be within a site or not. */
    int remain[3] = {0, 1, 1}, rows;
    CHECK(MPI_Cart_sub(grid, remain, &part) == MPI_SUCCESS);
    MPI_Comm_size(part, &rows);
    CHECK(rows == size / dims[0]);
    MPI_Cartdim_get(part, &count);
    CHECK(count == dimensions - 1);
    exchange_in_grid(part, dimensions - 1, 1);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&grid);
}

/* A grid of fewer ranks than there are, which may be within the first site. */
static void try_small_grid(void)
{
    int one = 1, no = 0;
    MPI_Comm grid;
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &no, 0, &grid) == MPI_SUCCESS);
    CHECK((grid == MPI_COMM_NULL) == (rank != 0));
    if (grid != MPI_COMM_NULL) {
        exchange_in_grid(grid, 1, 1);
        MPI_Comm_free(&grid);
    }
}

/* The forms with lists, beside each other and a message round, on a graph of two neighbours. Of each number
 * both ranks know who sent it. */
static void try_pending(MPI_Comm graph, const int *neighbors, const int *expected)
{
    int counts[2] = {1, 1}, starts[2] = {1, 0}, v[2] = {-1, -1}, w[2] = {-1, -1}, out[2] = {rank, rank}, from;
    MPI_Aint places[2] = {sizeof(int), 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Ineighbor_allgatherv(&rank, 1, MPI_INT, v, counts, starts, MPI_INT, graph, &requests[0]);
    MPI_Irecv(&from, 1, MPI_INT, neighbors[0], 3, graph, &requests[1]);
    MPI_Ineighbor_alltoallw(out, counts, places, types, w, counts, places, types, graph, &requests[2]);
    MPI_Isend(&rank, 1, MPI_INT, neighbors[1], 3, graph, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    CHECK(from == neighbors[0]);
    CHECK(v[0] == expected[1] && v[1] == expected[0] && w[0] == expected[1] && w[1] == expected[0]);
}

/* A ring as a graph that all know. */
static void try_graph(void)
{
    int index[MOST], edges[2 * MOST], count, all[2], in[2], kind;
    MPI_Comm graph;
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph) == MPI_SUCCESS);
    MPI_Topo_test(graph, &kind);
    MPI_Graph_neighbors_count(graph, rank, &count);
    MPI_Graph_neighbors(graph, rank, 2, all);
    CHECK(kind == MPI_GRAPH && count == 2 && all[0] == edges[2 * rank] && all[1] == edges[2 * rank + 1]);
    CHECK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, graph) == MPI_SUCCESS);
    CHECK(in[0] == all[0] && in[1] == all[1]);
    try_pending(graph, all, in);
    MPI_Comm_free(&graph);
}

/* Everybody sends to the next and to the one after it, with blocks of unlike lengths; rank 0 names all
 * edges, or each its own. */
static void try_part(int by_all)
{
    int to[2] = {(rank + 1) % size, (rank + 2) % size},
        from[2] = {(rank + size - 1) % size, (rank + 2 * size - 2) % size};
    int weights[2] = {5, 6}, in, out, is_weighted;
    MPI_Comm graph;
    if (by_all) {
        int sources[MOST], degrees[MOST], targets[2 * MOST], all_weights[2 * MOST];
        for (int i = 0; i < size; i++) {
            sources[i] = i;
            degrees[i] = 2;
            targets[2 * i] = (i + 1) % size;
            targets[2 * i + 1] = (i + 2) % size;
            all_weights[2 * i] = 5;
            all_weights[2 * i + 1] = 6;
        }
        MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0 ? size : 0, sources, degrees, targets, all_weights,
                              MPI_INFO_NULL, 0, &graph);
    } else {
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, weights, 2, to, weights, MPI_INFO_NULL, 0,
                                       &graph);
    }
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &is_weighted);
    CHECK(in == 2 && out == 2 && is_weighted);
    int sources[2], in_weights[2], targets[2], out_weights[2];
    MPI_Dist_graph_neighbors(graph, 2, sources, in_weights, 2, targets, out_weights);
    CHECK(targets[0] == to[0] && targets[1] == to[1] && out_weights[0] == 5 && out_weights[1] == 6);
    /* Counts by who sends: an edge to the next carries one number, the other two. */
    int counts[2], starts[2] = {0, 2}, out_counts[2] = {1, 2}, sent[4] = {rank, -1, rank, rank + 100},
                   got[4] = {-1, -1, -1, -1};
    for (int i = 0; i < 2; i++)
        counts[i] = in_weights[i] == 5 ? 1 : 2;
    CHECK(MPI_Neighbor_alltoallv(sent, out_counts, starts, MPI_INT, got, counts, starts, MPI_INT, graph) ==
          MPI_SUCCESS);
    for (int i = 0; i < 2; i++)
        CHECK(got[2 * i] == sources[i] && (counts[i] == 1 || got[2 * i + 1] == sources[i] + 100));
    MPI_Request request;
    memset(got, 0xff, sizeof got);
    MPI_Ineighbor_alltoallv(sent, out_counts, starts, MPI_INT, got, counts, starts, MPI_INT, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++)
        CHECK(got[2 * i] == sources[i] && (counts[i] == 1 || got[2 * i + 1] == sources[i] + 100));
    MPI_Comm_free(&graph);
}

/* Groups that make communicators of their own at the same time, in an order of their own. */
static void try_groups(void)
{
    MPI_Group all, some;
    MPI_Comm made;
    int members[MOST], count = 0, sum = 0, expected = 0, order;
    for (int i = size - 1; i >= 0; i--)
        if (i % 2 == rank % 2)
            members[count++] = i;
    for (int i = 0; i < count; i++)
        expected += members[i];
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, members, &some);
    for (int round = 0; round < 3; round++) {
        CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, some, 17, &made) == MPI_SUCCESS);
        MPI_Comm_rank(made, &order);
        CHECK(members[order] == rank);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made);
        CHECK(sum == expected);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int dimensions = 1; dimensions <= 3; dimensions++)
        for (int periodic = 0; periodic < 2; periodic++)
            try_grid(dimensions, periodic);
    try_small_grid();
    try_graph();
    try_part(0);
    try_part(1);
    try_groups();
    return end("topologies");
}
