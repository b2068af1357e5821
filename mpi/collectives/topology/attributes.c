#define _GNU_SOURCE
#include "collectives/topology/attributes.h"

#include "collectives/topology/sites.h"
#include "include/causeway_mpi.h"

#include <stdlib.h>

enum { DEPTH = CAUSEWAY_LEVEL_HOST + 1 };

static int *depths;
static int **colors;
static int depths_keyval, colors_keyval;
static int are_set;

/* A duplicated communicator has the same ranks, so the value holds for it, too. */
static int copy_pointer(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

/* attributes_forget frees the arrays. */
static int delete_nothing(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_SUCCESS;
}

static int attach(int *keyval, void *value)
{
    return real.Comm_create_keyval(copy_pointer, delete_nothing, keyval, NULL) == MPI_SUCCESS &&
           real.Comm_set_attr(handle.comm_world, *keyval, value) == MPI_SUCCESS;
}

static int fill(int size)
{
    depths = malloc(size * sizeof *depths);
    colors = malloc(size * (sizeof *colors + DEPTH * sizeof **colors));
    if (!depths || !colors)
        return 0;
    int *next = (int *)(colors + size);
    for (int i = 0; i < size; i++, next += DEPTH) {
        depths[i] = DEPTH;
        colors[i] = next;
        next[CAUSEWAY_LEVEL_GRID] = 0;
        next[CAUSEWAY_LEVEL_SITE] = sites_of(i);
        next[CAUSEWAY_LEVEL_HOST] = sites_host_of(i);
    }
    return 1;
}

void attributes_set(void)
{
    int size;
    if (sites_known() && real.Comm_size(handle.comm_world, &size) == MPI_SUCCESS && fill(size))
        are_set = attach(&depths_keyval, depths) && attach(&colors_keyval, colors);
}

int attributes_keyvals(int *for_depths, int *for_colors)
{
    *for_depths = depths_keyval;
    *for_colors = colors_keyval;
    return are_set;
}

void attributes_forget(void)
{
    if (are_set) {
        real.Comm_delete_attr(handle.comm_world, depths_keyval);
        real.Comm_delete_attr(handle.comm_world, colors_keyval);
        real.Comm_free_keyval(&depths_keyval);
        real.Comm_free_keyval(&colors_keyval);
    }
    are_set = 0;
    free(depths);
    free(colors);
    depths = NULL;
    colors = NULL;
}
