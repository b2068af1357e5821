/* Cartesian topologies over sites: arithmetic on the communicator's record. Ranks keep their order, which is
 * that of the sites, even if `reorder` is set: neighbours in the last dimensions are mostly at the same site.
 * A grid within a site is the MPI's own. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/calls/making.h"
#include "world/calls/shaping.h"
#include "world/native/native.h"

#include <stdlib.h>

static const struct topology *grid_of(MPI_Comm comm)
{
    const struct comm *on = comm_find(comm);
    return on && on->topology && on->topology->kind == MPI_CART ? on->topology : NULL;
}

/* The number of processes of a grid, or 0 if there are none, or more than the communicator has. */
static int nodes_of(const struct comm *on, int dimensions, const int *dims)
{
    int64_t nodes = 1;
    for (int i = 0; i < dimensions; i++) {
        if (dims[i] <= 0 || nodes * dims[i] > on->size)
            return 0;
        nodes *= dims[i];
    }
    return dimensions < 0 ? 0 : (int)nodes;
}

/* Gives a new communicator its grid. */
static int shape(MPI_Comm *made, int dimensions, const int *dims, const int *periods)
{
    static int (*own)(MPI_Comm, int, const int *, const int *, int, MPI_Comm *);
    if (*made == handle.comm_null)
        return MPI_SUCCESS;
    if (comm_find(*made))
        return shaping_record(*made, topology_grid(dimensions, dims, periods));
    if (!own)
        own =
            (int (*)(MPI_Comm, int, const int *, const int *, int, MPI_Comm *))mpi_calls_find("Cart_create");
    MPI_Comm part = *made;
    int status = native_meet(part);
    TRY(status, own ? own(part, dimensions, dims, periods, 0, made) : NO_MPI);
    TRY(status, real.Comm_free(&part));
    return status;
}

EXPORT int MPI_Cart_create(MPI_Comm comm, int dimensions, const int dims[], const int periods[], int reorder,
                           MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on) {
        if (ours.is_on)
            native_meet(comm);
        OTHER("Cart_create", (MPI_Comm, int, const int *, const int *, int, MPI_Comm *), comm, dimensions,
              dims, periods, reorder, made);
    }
    NEEDS(on, made && (dimensions <= 0 || (dims && periods)));
    if (on->local)
        return comm_error(on, MPI_ERR_COMM);
    int nodes = nodes_of(on, dimensions, dims);
    if (!nodes)
        return comm_error(on, MPI_ERR_DIMS);
    int status = making_split(on, on->rank < nodes ? 0 : -1, on->rank, made);
    TRY(status, shape(made, dimensions, dims, periods));
    return comm_error(on, status);
}
BOTH(Cart_create);

/* Lists the dimensions that remain, and numbers the part by the coordinates in those that are dropped. */
static int part_of(const struct topology *grid, const int *coords, const int *remain, int *dims, int *periods,
                   int *color)
{
    int left = 0;
    *color = 0;
    for (int i = 0; i < grid->dimensions; i++) {
        if (remain[i]) {
            dims[left] = grid->dims[i];
            periods[left++] = grid->periods[i];
        } else {
            *color = *color * grid->dims[i] + coords[i];
        }
    }
    return left;
}

EXPORT int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    const struct topology *grid = grid_of(comm);
    if (!on) {
        if (ours.is_on)
            native_meet(comm);
        OTHER("Cart_sub", (MPI_Comm, const int *, MPI_Comm *), comm, remain, made);
    }
    if (!grid)
        return comm_error(on, MPI_ERR_TOPOLOGY);
    NEEDS(on, made && (remain || !grid->dimensions));
    int *numbers = malloc(3 * (size_t)grid->dimensions * sizeof *numbers + 1);
    if (!numbers)
        return comm_error(on, MPI_ERR_NO_MEM);
    int *dims = numbers + grid->dimensions, *periods = dims + grid->dimensions, color;
    topology_coords(grid, on->rank, numbers);
    int left = part_of(grid, numbers, remain, dims, periods, &color);
    int status = making_split(on, color, on->rank, made);
    TRY(status, shape(made, left, dims, periods));
    free(numbers);
    return comm_error(on, status);
}
BOTH(Cart_sub);

EXPORT int MPI_Cart_map(MPI_Comm comm, int dimensions, const int dims[], const int periods[], int *rank)
{
    struct comm *on = comm_find(comm);
    if (!on)
        OTHER("Cart_map", (MPI_Comm, int, const int *, const int *, int *), comm, dimensions, dims, periods,
              rank);
    NEEDS(on, rank && (dimensions <= 0 || dims));
    int nodes = nodes_of(on, dimensions, dims);
    if (!nodes)
        return comm_error(on, MPI_ERR_DIMS);
    *rank = on->rank < nodes ? on->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
BOTH(Cart_map);

EXPORT int MPI_Cartdim_get(MPI_Comm comm, int *dimensions)
{
    const struct comm *on = comm_find(comm);
    const struct topology *grid = grid_of(comm);
    if (!on)
        OTHER("Cartdim_get", (MPI_Comm, int *), comm, dimensions);
    if (!grid)
        return comm_error(on, MPI_ERR_TOPOLOGY);
    NEEDS(on, dimensions);
    *dimensions = grid->dimensions;
    return MPI_SUCCESS;
}
BOTH(Cartdim_get);

EXPORT int MPI_Cart_get(MPI_Comm comm, int most, int dims[], int periods[], int coords[])
{
    const struct comm *on = comm_find(comm);
    const struct topology *grid = grid_of(comm);
    if (!on)
        OTHER("Cart_get", (MPI_Comm, int, int *, int *, int *), comm, most, dims, periods, coords);
    if (!grid || most < grid->dimensions)
        return comm_error(on, grid ? MPI_ERR_ARG : MPI_ERR_TOPOLOGY);
    NEEDS(on, !grid->dimensions || (dims && periods && coords));
    for (int i = 0; i < grid->dimensions; i++) {
        dims[i] = grid->dims[i];
        periods[i] = grid->periods[i];
    }
    topology_coords(grid, on->rank, coords);
    return MPI_SUCCESS;
}
BOTH(Cart_get);

EXPORT int MPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
    const struct comm *on = comm_find(comm);
    const struct topology *grid = grid_of(comm);
    if (!on)
        OTHER("Cart_rank", (MPI_Comm, const int *, int *), comm, coords, rank);
    NEEDS(on, rank && (!grid || !grid->dimensions || coords));
    int found = grid ? topology_rank(grid, coords) : 0;
    if (!grid || found == MPI_PROC_NULL)
        return comm_error(on, grid ? MPI_ERR_ARG : MPI_ERR_TOPOLOGY);
    *rank = found;
    return MPI_SUCCESS;
}
BOTH(Cart_rank);

EXPORT int MPI_Cart_coords(MPI_Comm comm, int rank, int most, int coords[])
{
    const struct comm *on = comm_find(comm);
    const struct topology *grid = grid_of(comm);
    if (!on)
        OTHER("Cart_coords", (MPI_Comm, int, int, int *), comm, rank, most, coords);
    if (!grid)
        return comm_error(on, MPI_ERR_TOPOLOGY);
    if (rank < 0 || rank >= on->size || most < grid->dimensions)
        return comm_error(on, most < grid->dimensions ? MPI_ERR_ARG : MPI_ERR_RANK);
    NEEDS(on, coords || !grid->dimensions);
    topology_coords(grid, rank, coords);
    return MPI_SUCCESS;
}
BOTH(Cart_coords);

EXPORT int MPI_Cart_shift(MPI_Comm comm, int dimension, int by, int *source, int *target)
{
    const struct comm *on = comm_find(comm);
    const struct topology *grid = grid_of(comm);
    if (!on)
        OTHER("Cart_shift", (MPI_Comm, int, int, int *, int *), comm, dimension, by, source, target);
    if (!grid || dimension < 0 || dimension >= grid->dimensions)
        return comm_error(on, grid ? MPI_ERR_DIMS : MPI_ERR_TOPOLOGY);
    NEEDS(on, source && target);
    *source = topology_shifted(grid, on->rank, dimension, -by);
    *target = topology_shifted(grid, on->rank, dimension, by);
    return MPI_SUCCESS;
}
BOTH(Cart_shift);
