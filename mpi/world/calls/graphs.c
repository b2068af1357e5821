/* Graphs over sites, which are kept in the communicator's record. A graph within a site is the MPI's own. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/calls/making.h"
#include "world/calls/shaping.h"
#include "world/native/native.h"

static const struct topology *graph_of(MPI_Comm comm)
{
    const struct comm *on = comm_find(comm);
    return on && on->topology && on->topology->kind == MPI_GRAPH ? on->topology : NULL;
}

EXPORT int MPI_Topo_test(MPI_Comm comm, int *kind)
{
    const struct comm *on = comm_find(comm);
    if (!on)
        OTHER("Topo_test", (MPI_Comm, int *), comm, kind);
    NEEDS(on, kind);
    *kind = on->topology ? on->topology->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
BOTH(Topo_test);

static int are_right(const struct comm *on, int nodes, const int *index, const int *edges)
{
    int before = 0;
    if (nodes <= 0 || nodes > on->size)
        return 0;
    for (int i = 0; i < nodes; before = index[i++])
        if (index[i] < before)
            return 0;
    for (int i = 0; i < before; i++)
        if (edges[i] < 0 || edges[i] >= nodes)
            return 0;
    return 1;
}

static int shape(MPI_Comm *made, int nodes, const int *index, const int *edges)
{
    static int (*own)(MPI_Comm, int, const int *, const int *, int, MPI_Comm *);
    if (*made == handle.comm_null)
        return MPI_SUCCESS;
    if (comm_find(*made))
        return shaping_record(*made, topology_graph(nodes, index, edges));
    if (!own)
        own =
            (int (*)(MPI_Comm, int, const int *, const int *, int, MPI_Comm *))mpi_calls_find("Graph_create");
    MPI_Comm part = *made;
    int status = native_meet(part);
    TRY(status, own ? own(part, nodes, index, edges, 0, made) : NO_MPI);
    TRY(status, real.Comm_free(&part));
    return status;
}

EXPORT int MPI_Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder,
                            MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on) {
        if (ours.is_on)
            native_meet(comm);
        OTHER("Graph_create", (MPI_Comm, int, const int *, const int *, int, MPI_Comm *), comm, nodes, index,
              edges, reorder, made);
    }
    NEEDS(on, made && (nodes <= 0 || (index && edges)));
    *made = handle.comm_null;
    if (on->local)
        return comm_error(on, MPI_ERR_COMM);
    if (nodes == 0)
        return MPI_SUCCESS;
    if (!are_right(on, nodes, index, edges))
        return comm_error(on, MPI_ERR_ARG);
    int status = making_split(on, on->rank < nodes ? 0 : -1, on->rank, made);
    TRY(status, shape(made, nodes, index, edges));
    return comm_error(on, status);
}
BOTH(Graph_create);

EXPORT int MPI_Graph_map(MPI_Comm comm, int nodes, const int index[], const int edges[], int *rank)
{
    struct comm *on = comm_find(comm);
    if (!on)
        OTHER("Graph_map", (MPI_Comm, int, const int *, const int *, int *), comm, nodes, index, edges, rank);
    NEEDS(on, rank && (nodes <= 0 || (index && edges)));
    if (!are_right(on, nodes, index, edges))
        return comm_error(on, MPI_ERR_ARG);
    *rank = on->rank < nodes ? on->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
BOTH(Graph_map);

EXPORT int MPI_Graphdims_get(MPI_Comm comm, int *nodes, int *edges)
{
    const struct comm *on = comm_find(comm);
    const struct topology *graph = graph_of(comm);
    if (!on)
        OTHER("Graphdims_get", (MPI_Comm, int *, int *), comm, nodes, edges);
    if (!graph)
        return comm_error(on, MPI_ERR_TOPOLOGY);
    NEEDS(on, nodes && edges);
    *nodes = graph->nodes;
    *edges = graph->index[graph->nodes - 1];
    return MPI_SUCCESS;
}
BOTH(Graphdims_get);

EXPORT int MPI_Graph_get(MPI_Comm comm, int most_index, int most_edges, int index[], int edges[])
{
    const struct comm *on = comm_find(comm);
    const struct topology *graph = graph_of(comm);
    if (!on)
        OTHER("Graph_get", (MPI_Comm, int, int, int *, int *), comm, most_index, most_edges, index, edges);
    if (!graph)
        return comm_error(on, MPI_ERR_TOPOLOGY);
    NEEDS(on, (index || most_index <= 0) && (edges || most_edges <= 0));
    for (int i = 0; i < graph->nodes && i < most_index; i++)
        index[i] = graph->index[i];
    for (int i = 0; i < graph->index[graph->nodes - 1] && i < most_edges; i++)
        edges[i] = graph->edges[i];
    return MPI_SUCCESS;
}
BOTH(Graph_get);

EXPORT int MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *count)
{
    const struct comm *on = comm_find(comm);
    const struct topology *graph = graph_of(comm);
    if (!on)
        OTHER("Graph_neighbors_count", (MPI_Comm, int, int *), comm, rank, count);
    if (!graph || rank < 0 || rank >= on->size)
        return comm_error(on, graph ? MPI_ERR_RANK : MPI_ERR_TOPOLOGY);
    NEEDS(on, count);
    topology_neighbors(graph, rank, count);
    return MPI_SUCCESS;
}
BOTH(Graph_neighbors_count);

EXPORT int MPI_Graph_neighbors(MPI_Comm comm, int rank, int most, int neighbors[])
{
    const struct comm *on = comm_find(comm);
    const struct topology *graph = graph_of(comm);
    if (!on)
        OTHER("Graph_neighbors", (MPI_Comm, int, int, int *), comm, rank, most, neighbors);
    if (!graph || rank < 0 || rank >= on->size)
        return comm_error(on, graph ? MPI_ERR_RANK : MPI_ERR_TOPOLOGY);
    int count;
    const int *all = topology_neighbors(graph, rank, &count);
    for (int i = 0; i < count && i < most; i++)
        neighbors[i] = all[i];
    return MPI_SUCCESS;
}
BOTH(Graph_neighbors);
