#include "places.h"

#include "../../mpi/include/causeway_mpi.h"

#include <stdlib.h>
#include <string.h>

/* A colour that no place has: they are numbered from 0. */
#define OF_ANOTHER_WORLD (-1)

void places_told(const char *key, char value[PLACES_TEXT_BYTES])
{
    MPI_Info info;
    int is_there = 0;
    memset(value, 0, PLACES_TEXT_BYTES);
    if (MPI_Comm_get_info(MPI_COMM_WORLD, &info) != MPI_SUCCESS)
        return;
#if MPI_VERSION >= 4
    int bytes = PLACES_TEXT_BYTES;
    MPI_Info_get_string(info, key, &bytes, value, &is_there);
#else
    MPI_Info_get(info, key, PLACES_TEXT_BYTES - 1, value, &is_there);
#endif
    MPI_Info_free(&info);
    size_t length = is_there ? strnlen(value, PLACES_TEXT_BYTES - 1) : 0;
    memset(value + length, 0, PLACES_TEXT_BYTES - length);
}

/* The colours of all ranks of MPI_COMM_WORLD at all levels, or NULL. */
static int **colors_of_world(void)
{
    char keyval[PLACES_TEXT_BYTES];
    int is_there = 0, **colors = NULL;
    places_told(CAUSEWAY_INFO_COLORS_KEYVAL, keyval);
    if (!keyval[0])
        return NULL;
    MPI_Comm_get_attr(MPI_COMM_WORLD, atoi(keyval), &colors, &is_there);
    return is_there ? colors : NULL;
}

static void ranks_in_world(MPI_Comm comm, int ranks, const int *own_ranks, int *world_ranks)
{
    MPI_Group own, world;
    MPI_Comm_group(comm, &own);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(own, ranks, own_ranks, world, world_ranks);
    MPI_Group_free(&own);
    MPI_Group_free(&world);
}

static int numbered(const int *found, int ranks, int *color)
{
    int count = 0;
    for (int i = 0; i < ranks; i++) {
        int first = 0;
        while (found[first] != found[i])
            first++;
        color[i] = first < i ? color[first] : count++;
    }
    return count;
}

int places_colors(MPI_Comm comm, int level, int *color)
{
    int ranks, count, **colors = colors_of_world();
    if (!colors)
        return 0;
    MPI_Comm_size(comm, &ranks);
    int *found = malloc(2 * sizeof(int) * (size_t)ranks), *world_ranks = found ? found + ranks : NULL;
    if (!found)
        return -1;
    for (int i = 0; i < ranks; i++)
        found[i] = i;
    ranks_in_world(comm, ranks, found, world_ranks);
    for (int i = 0; i < ranks; i++)
        found[i] = world_ranks[i] == MPI_UNDEFINED ? OF_ANOTHER_WORLD : colors[world_ranks[i]][level];
    count = numbered(found, ranks, color);
    free(found);
    return count;
}
