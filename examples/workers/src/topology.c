#include "topology.h"

#include "../../../mpi/include/causeway_mpi.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

/* The value of a key of MPI_COMM_WORLD's info object, or an empty text. */
static void told(const char *key, char value[NAME_BYTES])
{
    MPI_Info info;
    int is_there = 0;
    memset(value, 0, NAME_BYTES);
    if (MPI_Comm_get_info(MPI_COMM_WORLD, &info) != MPI_SUCCESS)
        return;
#if MPI_VERSION >= 4
    int bytes = NAME_BYTES;
    MPI_Info_get_string(info, key, &bytes, value, &is_there);
#else
    MPI_Info_get(info, key, NAME_BYTES - 1, value, &is_there);
#endif
    if (!is_there)
        memset(value, 0, NAME_BYTES);
    MPI_Info_free(&info);
}

/* Adds colours that the attribute has at one of its levels. A rank of another MPI_COMM_WORLD has none: such
 * ranks are a group. */
static void add_places(struct workers_tree *tree, int *const *colors, const int *world_ranks, int level)
{
    int *found = workers_new(sizeof(int) * tree->ranks);
    for (int i = 0; i < tree->ranks; i++)
        found[i] = world_ranks[i] == MPI_UNDEFINED ? -1 : colors[world_ranks[i]][level];
    workers_tree_level(tree, found);
    free(found);
}

static void translate(MPI_Comm comm, int *world_ranks, int ranks)
{
    MPI_Group own, world;
    int *own_ranks = workers_new(sizeof(int) * ranks);
    for (int i = 0; i < ranks; i++)
        own_ranks[i] = i;
    MPI_Comm_group(comm, &own);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(own, ranks, own_ranks, world, world_ranks);
    MPI_Group_free(&own);
    MPI_Group_free(&world);
    free(own_ranks);
}

/* Ranks of one name are a group of the job's profile, and so are those without. */
static void add_named(MPI_Comm comm, struct workers_tree *tree, int rank)
{
    char own[NAME_BYTES], *names = workers_new((size_t)NAME_BYTES * tree->ranks);
    int *found = workers_new(sizeof(int) * tree->ranks);
    told(CAUSEWAY_INFO_GROUP, own);
    MPI_Gather(own, NAME_BYTES, MPI_CHAR, names, NAME_BYTES, MPI_CHAR, 0, comm);
    for (int i = 0; i < tree->ranks; i++)
        while (memcmp(names + (size_t)found[i] * NAME_BYTES, names + (size_t)i * NAME_BYTES, NAME_BYTES) != 0)
            found[i]++;
    if (rank == 0)
        workers_tree_level(tree, found);
    free(names);
    free(found);
}

void workers_topology_read(MPI_Comm comm, const struct workers_settings *settings, struct workers_tree *tree)
{
    char keyval[NAME_BYTES];
    int rank, is_there = 0, **colors = NULL;
    MPI_Comm_rank(comm, &rank);
    told(CAUSEWAY_INFO_COLORS_KEYVAL, keyval);
    if (keyval[0])
        MPI_Comm_get_attr(MPI_COMM_WORLD, atoi(keyval), &colors, &is_there);
    int *world_ranks = workers_new(sizeof(int) * tree->ranks);
    translate(comm, world_ranks, tree->ranks);
    if (rank == 0 && is_there && settings->has_sites)
        add_places(tree, colors, world_ranks, CAUSEWAY_LEVEL_SITE);
    if (settings->has_groups)
        add_named(comm, tree, rank);
    if (rank == 0 && is_there && settings->has_hosts)
        add_places(tree, colors, world_ranks, CAUSEWAY_LEVEL_HOST);
    free(world_ranks);
}
