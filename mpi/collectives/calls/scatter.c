/* Scatter and Scatterv. See enter.h. */
#define _GNU_SOURCE
#include "collectives/algorithms/algorithms.h"
#include "collectives/calls/columns.h"
#include "collectives/calls/enter.h"

#include <stdlib.h>

static int scatter(struct hierarchy *on, const void *from, int64_t from_count, const struct shape *from_shape,
                   void *into, int64_t count, const struct shape *shape, int root,
                   const struct choice *choice)
{
    struct columns all = {0};
    int status = MPI_SUCCESS;
    int at_root = on->rank == root;
    if (choice->algorithm == DIRECT) {
        if (at_root)
            status = columns_even(&all, on, from_count, from_shape);
        TRY(status, scatter_direct(on, from, all.counts, all.displs, at_root ? from_shape->type : handle.byte,
                                   into, count, into == MPI_IN_PLACE ? handle.byte : shape->type, root));
        columns_free(&all);
        return status;
    }
    struct bytes bytes = {0};
    char *room = NULL, *own = NULL;
    int64_t length =
        into == MPI_IN_PLACE ? (int64_t)from_count * from_shape->size : (int64_t)count * shape->size;
    if (at_root) {
        room = malloc(on->size * length + 1);
        status = room ? MPI_SUCCESS : MPI_ERR_NO_MEM;
        for (int i = 0; i < on->size; i++)
            TRY(status, pack((const char *)from + (MPI_Aint)on->members[i] * from_count * from_shape->extent,
                             from_count, from_shape, room + i * length, length));
    }
    if (into == MPI_IN_PLACE) {
        own = malloc(length + 1);
        TRY(status, own ? scatter_leaders(on, room, length, own, root) : MPI_ERR_NO_MEM);
    } else {
        TRY(status, bytes_room(into, count, shape, &bytes));
        TRY(status, scatter_leaders(on, room, length, bytes.at, root));
        TRY(status, bytes_unpack(&bytes, into, count, shape));
        bytes_free(&bytes);
    }
    free(own);
    free(room);
    return status;
}

/* The root sends data of shape `shape`; every rank receives data of shape `into_shape`. */
static int run_scatter(struct hierarchy *on, const struct plan *plan)
{
    return scatter(on, plan->from, plan->count, &plan->shape, plan->into, plan->into_count, &plan->into_shape,
                   plan->root, &plan->choice);
}

static int plan_scatter(struct plan *plan, LARGE_PARAMETERS(Scatter))
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count,
    plan->root = root, plan->run = run_scatter;
    int in_place = into == MPI_IN_PLACE;
    if (!enter(plan, comm, OF_SCATTER, in_place ? count : into_count, in_place ? type : into_type))
        return 0;
    plan->into_shape = plan->shape;
    int at_root = plan->on->rank == root;
    if (!is_root(plan->on, root) || (at_root && (count < 0 || !shape_of(type, &plan->shape))))
        return give_up(plan);
    return 1;
}
FORMS(Scatter, scatter);
LARGE_FORMS(Scatter, scatter, plan_scatter);

static int run_scatterv(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = on->rank == plan->root ? columns_of(&all, on, &plan->out, plan->shape.extent, plan->type)
                                        : MPI_SUCCESS;
    TRY(status, scatter_direct(on, plan->from, all.counts, all.displs, plan->type, plan->into,
                               plan->into_count, plan->into_type, plan->root));
    columns_free(&all);
    return status;
}

static int enter_scatterv(struct plan *plan, const void *from, MPI_Datatype type, void *into,
                          MPI_Count into_count, MPI_Datatype into_type, int root, MPI_Comm comm)
{
    plan->from = from, plan->type = type, plan->into = into, plan->into_count = into_count,
    plan->into_type = into_type;
    plan->root = root, plan->run = run_scatterv;
    if (!enter_any(plan, comm, OF_SCATTER))
        return 0;
    if (plan->on->rank != root)
        plan->out = (struct vector){0};
    else if (!has_both(&plan->out) || !shape_of(type, &plan->shape))
        return give_up(plan);
    return is_root(plan->on, root) || give_up(plan);
}

static int plan_scatterv(struct plan *plan, PARAMETERS(Scatterv))
{
    plan->out = (struct vector){.counts = counts, .displs = displs};
    return enter_scatterv(plan, from, type, into, into_count, into_type, root, comm);
}

static int plan_large_scatterv(struct plan *plan, LARGE_PARAMETERS(Scatterv))
{
    plan->out = (struct vector){.large_counts = counts, .large_displs = displs};
    return enter_scatterv(plan, from, type, into, into_count, into_type, root, comm);
}
FORMS(Scatterv, scatterv);
LARGE_FORMS(Scatterv, scatterv, plan_large_scatterv);
