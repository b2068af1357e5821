#define _GNU_SOURCE
#include "messages/peers.h"

#include "messages/counts.h"

#include <pthread.h>
#include <stdlib.h>

/* Attribute of a communicator: the number of its ranks, then the world rank of each. */
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Group world;
static int world_size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A duplicated communicator gets its own attribute when it is first needed. */
static int copy_nothing(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

static int free_ranks(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    free(value);
    return MPI_SUCCESS;
}

int peers_begin(void)
{
    return real.Comm_group(handle.comm_world, &world) == MPI_SUCCESS &&
           real.Comm_size(handle.comm_world, &world_size) == MPI_SUCCESS &&
           real.Comm_create_keyval(copy_nothing, free_ranks, &keyval, NULL) == MPI_SUCCESS;
}

static int remote_group(MPI_Comm comm, MPI_Group *group)
{
    OTHER("Comm_remote_group", (MPI_Comm, MPI_Group *), comm, group);
}

static int group_of(MPI_Comm comm, MPI_Group *group)
{
    int is_inter = 0;
    int status = real.Comm_test_inter(comm, &is_inter);
    return TRY(status, is_inter ? remote_group(comm, group) : real.Comm_group(comm, group));
}

/* The number of ranks of a group, then the world rank of each; NULL on an error. */
static int *ranks_of(MPI_Group group)
{
    int size = 0;
    if (real.Group_size(group, &size) != MPI_SUCCESS || size < 1)
        return NULL;
    int *ranks = malloc((1 + 2 * (size_t)size) * sizeof *ranks);
    if (!ranks)
        return NULL;
    int *own = ranks + 1 + size;
    ranks[0] = size;
    for (int i = 0; i < size; i++)
        own[i] = i;
    if (real.Group_translate_ranks(group, size, own, world, ranks + 1) != MPI_SUCCESS) {
        free(ranks);
        return NULL;
    }
    return ranks;
}

static int *ranks_of_comm(MPI_Comm comm)
{
    int *ranks = NULL, is_there = 0;
    if (real.Comm_get_attr(comm, keyval, &ranks, &is_there) != MPI_SUCCESS)
        return NULL;
    if (is_there)
        return ranks;
    MPI_Group group;
    if (group_of(comm, &group) != MPI_SUCCESS)
        return NULL;
    ranks = ranks_of(group);
    real.Group_free(&group);
    if (ranks && real.Comm_set_attr(comm, keyval, ranks) != MPI_SUCCESS) {
        free(ranks);
        return NULL;
    }
    return ranks;
}

static int rank_in(const int *ranks, int rank)
{
    int is_there = ranks && rank >= 0 && rank < ranks[0] && ranks[1 + rank] != MPI_UNDEFINED;
    return is_there ? ranks[1 + rank] : NO_RANK;
}

int peers_rank(MPI_Comm comm, int rank)
{
    if (comm == handle.comm_world)
        return rank >= 0 && rank < world_size ? rank : NO_RANK;
    pthread_mutex_lock(&lock);
    int found = rank_in(ranks_of_comm(comm), rank);
    pthread_mutex_unlock(&lock);
    return found;
}

static int group_of_window(MPI_Win win, MPI_Group *group)
{
    OTHER("Win_get_group", (MPI_Win, MPI_Group *), win, group);
}

int peers_rank_of_window(MPI_Win win, int rank)
{
    MPI_Group group;
    int found = NO_RANK;
    if (group_of_window(win, &group) != MPI_SUCCESS)
        return found;
    if (real.Group_translate_ranks(group, 1, &rank, world, &found) != MPI_SUCCESS || found == MPI_UNDEFINED)
        found = NO_RANK;
    real.Group_free(&group);
    return found;
}

int peers_count(MPI_Comm comm)
{
    int size = 0;
    return real.Comm_size(comm, &size) == MPI_SUCCESS ? size : 0;
}

static int topology_of(MPI_Comm comm, int *kind) { OTHER("Topo_test", (MPI_Comm, int *), comm, kind); }
static int dimensions(MPI_Comm comm, int *count) { OTHER("Cartdim_get", (MPI_Comm, int *), comm, count); }
static int of_graph(MPI_Comm comm, int rank, int *count)
{
    OTHER("Graph_neighbors_count", (MPI_Comm, int, int *), comm, rank, count);
}
static int of_distributed_graph(MPI_Comm comm, int *in, int *out, int *weighted)
{
    OTHER("Dist_graph_neighbors_count", (MPI_Comm, int *, int *, int *), comm, in, out, weighted);
}

int peers_neighbours(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED, count = 0, rank = 0, in, weighted;
    if (topology_of(comm, &kind) != MPI_SUCCESS)
        return 0;
    if (kind == MPI_CART)
        return dimensions(comm, &count) == MPI_SUCCESS ? 2 * count : 0;
    if (kind == MPI_GRAPH && real.Comm_rank(comm, &rank) == MPI_SUCCESS)
        return of_graph(comm, rank, &count) == MPI_SUCCESS ? count : 0;
    if (kind == MPI_DIST_GRAPH)
        return of_distributed_graph(comm, &in, &count, &weighted) == MPI_SUCCESS ? count : 0;
    return 0;
}

int64_t peers_bytes(int64_t count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (count <= 0 || type == handle.datatype_null || real.Type_size_x(type, &size) != MPI_SUCCESS)
        return 0;
    return size > 0 ? count * (int64_t)size : 0;
}
