#include "topology.h"

#include "../../../mpi/include/causeway_mpi.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A keyval has ten digits at most. */
#define VALUE_BYTES 64

/* The colours of all ranks of MPI_COMM_WORLD, or NULL where Causeway does not say sites. */
static int **colors_of_world(void)
{
    MPI_Info info;
    char value[VALUE_BYTES] = "";
    int is_there = 0, **colors = NULL;
    if (MPI_Comm_get_info(MPI_COMM_WORLD, &info) != MPI_SUCCESS)
        return NULL;
#if MPI_VERSION >= 4
    int bytes = VALUE_BYTES;
    MPI_Info_get_string(info, CAUSEWAY_INFO_COLORS_KEYVAL, &bytes, value, &is_there);
#else
    MPI_Info_get(info, CAUSEWAY_INFO_COLORS_KEYVAL, VALUE_BYTES - 1, value, &is_there);
#endif
    MPI_Info_free(&info);
    if (!is_there)
        return NULL;
    MPI_Comm_get_attr(MPI_COMM_WORLD, atoi(value), &colors, &is_there);
    return is_there ? colors : NULL;
}

/* Sizes with commas between them, which add up to the number of ranks. */
static int from_list(const char *list, int ranks, int *site)
{
    int found = 0, rank = 0;
    for (const char *at = list;; at++) {
        char *end;
        errno = 0;
        long size = strtol(at, &end, 10);
        if (errno || end == at || strchr(" \t\n+", *at) || size < 1 || size > ranks - rank)
            return 0;
        for (long i = 0; i < size; i++)
            site[rank++] = found;
        found++;
        if (!*end)
            return rank == ranks ? found : 0;
        if (*end != ',')
            return 0;
        at = end;
    }
}

/* Numbers colours by their lowest ranks. */
static int from_colors(const int *color, int ranks, int *site)
{
    int found = 0;
    for (int i = 0; i < ranks; i++) {
        int first = 0;
        while (color[first] != color[i])
            first++;
        site[i] = first < i ? site[first] : found++;
    }
    return found;
}

int tsqr_topology_read(MPI_Comm comm, int *site)
{
    MPI_Group own, world;
    int ranks, found, **colors = colors_of_world();
    const char *list = getenv("CAUSEWAY_TSQR_GROUPS");
    MPI_Comm_size(comm, &ranks);
    if (list && *list)
        return from_list(list, ranks, site);
    int *own_ranks = malloc(sizeof(int) * (size_t)ranks), *world_ranks = malloc(sizeof(int) * (size_t)ranks);
    if (!own_ranks || !world_ranks) {
        free(own_ranks);
        free(world_ranks);
        return -1;
    }
    for (int i = 0; i < ranks; i++)
        own_ranks[i] = i;
    MPI_Comm_group(comm, &own);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(own, ranks, own_ranks, world, world_ranks);
    MPI_Group_free(&own);
    MPI_Group_free(&world);
    /* Ranks of another MPI_COMM_WORLD have no colour; they are taken for one site. */
    for (int i = 0; i < ranks; i++)
        own_ranks[i] = !colors                           ? 0
                       : world_ranks[i] == MPI_UNDEFINED ? INT_MIN
                                                         : colors[world_ranks[i]][CAUSEWAY_LEVEL_SITE];
    found = from_colors(own_ranks, ranks, site);
    free(own_ranks);
    free(world_ranks);
    return found;
}
