/* Gather and Gatherv. See enter.h. */
#define _GNU_SOURCE
#include "collectives/algorithms/algorithms.h"
#include "collectives/calls/columns.h"
#include "collectives/calls/enter.h"

#include <stdlib.h>

static int gather(struct hierarchy *on, const void *from, int64_t count, const struct shape *shape,
                  void *into, int64_t into_count, const struct shape *into_shape, int root,
                  const struct choice *choice)
{
    struct columns all = {0};
    int status = MPI_SUCCESS;
    int at_root = on->rank == root;
    if (choice->algorithm == DIRECT) {
        if (at_root)
            status = columns_even(&all, on, into_count, into_shape);
        TRY(status,
            gather_direct(on, from, count, at_root && from == MPI_IN_PLACE ? handle.byte : shape->type, into,
                          all.counts, all.displs, at_root ? into_shape->type : handle.byte, root));
        columns_free(&all);
        return status;
    }
    struct bytes bytes = {0};
    char *room = NULL;
    const void *own = from;
    if (from == MPI_IN_PLACE)
        own = (char *)into + (MPI_Aint)root * into_count * into_shape->extent;
    status = bytes_pack(own, from == MPI_IN_PLACE ? into_count : count,
                        from == MPI_IN_PLACE ? into_shape : shape, &bytes);
    if (at_root && status == MPI_SUCCESS && !(room = malloc(on->size * bytes.length + 1)))
        status = MPI_ERR_NO_MEM;
    TRY(status, gather_leaders(on, bytes.at, bytes.length, room, root));
    for (int i = 0; at_root && i < on->size; i++) {
        int rank = on->members[i];
        if (rank != root || from != MPI_IN_PLACE)
            TRY(status, unpack(room + i * bytes.length, bytes.length,
                               (char *)into + (MPI_Aint)rank * into_count * into_shape->extent, into_count,
                               into_shape));
    }
    bytes_free(&bytes);
    free(room);
    return status;
}

static int run_gather(struct hierarchy *on, const struct plan *plan)
{
    return gather(on, plan->from, plan->count, &plan->shape, plan->into, plan->into_count, &plan->into_shape,
                  plan->root, &plan->choice);
}

static int plan_gather(struct plan *plan, LARGE_PARAMETERS(Gather))
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count,
    plan->root = root, plan->run = run_gather;
    /* With MPI_IN_PLACE, the root need not describe what it sends; the other ranks need not describe what the
     * root receives. */
    int in_place = from == MPI_IN_PLACE;
    if (!enter(plan, comm, OF_GATHER, in_place ? into_count : count, in_place ? into_type : type))
        return 0;
    int at_root = plan->on->rank == root;
    if (!is_root(plan->on, root) || (at_root && (into_count < 0 || !shape_of(into_type, &plan->into_shape))))
        return give_up(plan);
    return 1;
}
FORMS(Gather, gather);
LARGE_FORMS(Gather, gather, plan_gather);

static int run_gatherv(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = on->rank == plan->root ? columns_of(&all, on, &plan->in, plan->shape.extent, plan->into_type)
                                        : MPI_SUCCESS;
    TRY(status, gather_direct(on, plan->from, plan->count, plan->type, plan->into, all.counts, all.displs,
                              plan->into_type, plan->root));
    columns_free(&all);
    return status;
}

static int enter_gatherv(struct plan *plan, const void *from, MPI_Count count, MPI_Datatype type, void *into,
                         MPI_Datatype into_type, int root, MPI_Comm comm)
{
    plan->from = from, plan->count = count, plan->type = type, plan->into = into, plan->into_type = into_type;
    plan->root = root, plan->run = run_gatherv;
    if (!enter_any(plan, comm, OF_GATHER))
        return 0;
    /* The receive arguments are significant only at the root. */
    if (plan->on->rank != root)
        plan->in = (struct vector){0};
    else if (!has_both(&plan->in) || !shape_of(into_type, &plan->shape))
        return give_up(plan);
    return is_root(plan->on, root) || give_up(plan);
}

static int plan_gatherv(struct plan *plan, PARAMETERS(Gatherv))
{
    plan->in = (struct vector){.counts = into_counts, .displs = into_displs};
    return enter_gatherv(plan, from, count, type, into, into_type, root, comm);
}

static int plan_large_gatherv(struct plan *plan, LARGE_PARAMETERS(Gatherv))
{
    plan->in = (struct vector){.large_counts = into_counts, .large_displs = into_displs};
    return enter_gatherv(plan, from, count, type, into, into_type, root, comm);
}
FORMS(Gatherv, gatherv);
LARGE_FORMS(Gatherv, gatherv, plan_large_gatherv);
