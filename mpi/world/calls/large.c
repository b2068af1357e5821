#define _GNU_SOURCE
#include "world/calls/large.h"

#include "world/native/rows.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int large_count(struct large *large, MPI_Count count, MPI_Datatype *type)
{
    if (count <= INT_MAX)
        return count < 0 ? -1 : (int)count;
    MPI_Datatype *row = &large->rows[large->row_count];
    int status = row_make(count, *type, row);
    if (status != MPI_SUCCESS) {
        large->error = status;
        return 0;
    }
    large->row_count++;
    *type = *row;
    return 1;
}

int large_sent(struct large *large, const void *buffer, MPI_Count count, MPI_Datatype *type)
{
    return buffer == MPI_IN_PLACE ? 0 : large_count(large, count, type);
}

int large_few(struct large *large, MPI_Count count)
{
    large->is_too_large |= count > INT_MAX;
    return count < 0 ? -1 : (int)count;
}

static int *list_new(struct large *large, int many)
{
    int *list = malloc((size_t)(many > 0 ? many : 1) * sizeof *list);
    if (!list)
        large->error = MPI_ERR_NO_MEM;
    large->lists[large->list_count++] = list;
    return list;
}

const int *large_counts(struct large *large, const MPI_Count *wide, int many)
{
    int *list = list_new(large, many);
    for (int i = 0; i < many && list; i++)
        list[i] = large_few(large, wide[i]);
    return list;
}

const int *large_displs(struct large *large, const MPI_Aint *wide, int many)
{
    int *list = list_new(large, many);
    for (int i = 0; i < many && list; i++) {
        large->is_too_large |= wide[i] > INT_MAX || wide[i] < INT_MIN;
        list[i] = (int)wide[i];
    }
    return list;
}

/* Queries an int of a communicator by the call `name`, as the program would. */
static int ask(const char *name, MPI_Comm comm)
{
    int (*call)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))large_find_small(name);
    int answer = 0;
    return call && call(comm, &answer) == MPI_SUCCESS ? answer : 0;
}

int large_is_root(MPI_Comm comm, int root)
{
    return ask("MPI_Comm_test_inter", comm) ? root == MPI_ROOT : root == ask("MPI_Comm_rank", comm);
}

int large_own_members(MPI_Comm comm) { return ask("MPI_Comm_size", comm); }

int large_members(MPI_Comm comm)
{
    return ask("MPI_Comm_test_inter", comm) ? ask("MPI_Comm_remote_size", comm) : large_own_members(comm);
}

int large_neighbors(MPI_Comm comm, int way)
{
    int kind = ask("MPI_Topo_test", comm), in = 0, out = 0, is_weighted;
    if (kind == MPI_CART)
        return 2 * ask("MPI_Cartdim_get", comm);
    if (kind == MPI_GRAPH) {
        int (*count)(MPI_Comm, int, int *) =
            (int (*)(MPI_Comm, int, int *))large_find_small("MPI_Graph_neighbors_count");
        return count && count(comm, ask("MPI_Comm_rank", comm), &in) == MPI_SUCCESS ? in : 0;
    }
    int (*count)(MPI_Comm, int *, int *, int *) =
        (int (*)(MPI_Comm, int *, int *, int *))large_find_small("MPI_Dist_graph_neighbors_count");
    if (kind != MPI_DIST_GRAPH || !count || count(comm, &in, &out, &is_weighted) != MPI_SUCCESS)
        return 0;
    return way == TO ? out : in;
}

void *large_at(const void *buffer, MPI_Aint bytes)
{
    return buffer == MPI_IN_PLACE || !buffer ? (void *)buffer : (char *)buffer + bytes;
}

MPI_Aint large_extent(MPI_Datatype type)
{
    MPI_Aint low, extent = 0;
    real.Type_get_extent(type, &low, &extent);
    return extent;
}

void *large_find_small(const char *name) { return mpi_calls_first(name); }

int large_refuse(struct large *large, MPI_Comm comm, const char *name, int *is_told)
{
    if (large->error != MPI_SUCCESS) {
        real.Comm_call_errhandler(comm, large->error);
        return large->error;
    }
    char text[128];
    snprintf(text, sizeof text, "%s with counts or displacements above %d", name, INT_MAX);
    return refuse(comm, text, is_told);
}

void large_end(struct large *large)
{
    for (int i = 0; i < large->row_count; i++)
        real.Type_free(&large->rows[i]);
    for (int i = 0; i < large->list_count; i++)
        free(large->lists[i]);
}
