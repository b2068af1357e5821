/* Allgather and Allgatherv. See enter.h. */
#define _GNU_SOURCE
#include "collectives/algorithms/algorithms.h"
#include "collectives/calls/columns.h"
#include "collectives/calls/enter.h"

#include <stdlib.h>
#include <string.h>

/* At every rank, `into` receives the counts[rank] elements of each rank at byte displs[rank]. */
static int allgather(struct hierarchy *on, const void *from, int64_t count, const struct shape *shape,
                     void *into, const MPI_Count counts[], const MPI_Aint displs[],
                     const struct shape *into_shape, const struct choice *choice)
{
    struct bytes own = {0};
    int64_t *lengths = malloc(2 * on->size * sizeof *lengths), *at = lengths + on->size, all = 0;
    /* The multi-leader algorithm receives directly into the final place if the datatype is contiguous. */
    int multi_leader = choice->algorithm == MULTI_LEADER,
        in_place = multi_leader && into_shape->is_contiguous;
    if (!lengths)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < on->size; i++) {
        int rank = on->members[i];
        lengths[i] = (int64_t)counts[rank] * into_shape->size;
        at[i] = in_place ? displs[rank] : all;
        all += lengths[i];
    }
    char *memory = in_place ? NULL : malloc(all + 1), *room = in_place ? into : memory;
    int status = room || all == 0 ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (from == MPI_IN_PLACE)
        TRY(status, bytes_pack((char *)into + displs[on->rank], counts[on->rank], into_shape, &own));
    else
        TRY(status, bytes_pack(from, count, shape, &own));
    if (multi_leader) {
        char *mine = room + at[on->first[on->site] + on->local_rank];
        if (status == MPI_SUCCESS && own.length > 0 && own.at != mine)
            memcpy(mine, own.at, own.length);
        TRY(status, allgather_multi_leader(on, lengths, at, room, choice->segment));
    } else {
        TRY(status, allgather_leaders(on, own.at, lengths[0], room));
    }
    for (int i = 0; i < on->size && !in_place; i++) {
        int rank = on->members[i];
        if (rank != on->rank || from != MPI_IN_PLACE)
            TRY(status,
                unpack(room + at[i], lengths[i], (char *)into + displs[rank], counts[rank], into_shape));
    }
    bytes_free(&own);
    free(memory);
    free(lengths);
    return status;
}

static int run_allgather(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = columns_even(&all, on, plan->into_count, &plan->into_shape);
    TRY(status, allgather(on, plan->from, plan->count, &plan->shape, plan->into, all.counts, all.displs,
                          &plan->into_shape, &plan->choice));
    columns_free(&all);
    return status;
}

static int plan_allgather(struct plan *plan, LARGE_PARAMETERS(Allgather))
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count,
    plan->run = run_allgather;
    if (!enter(plan, comm, OF_ALLGATHER, into_count, into_type))
        return 0;
    plan->into_shape = plan->shape;
    return from == MPI_IN_PLACE || (count >= 0 && shape_of(type, &plan->shape)) || give_up(plan);
}
FORMS(Allgather, allgather);
LARGE_FORMS(Allgather, allgather, plan_allgather);

static int run_allgatherv(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = columns_of(&all, on, &plan->in, plan->into_shape.extent, plan->into_type);
    TRY(status, allgather(on, plan->from, plan->count, &plan->shape, plan->into, all.counts, all.displs,
                          &plan->into_shape, &plan->choice));
    columns_free(&all);
    return status;
}

static int enter_allgatherv(struct plan *plan, const void *from, MPI_Count count, MPI_Datatype type,
                            void *into, MPI_Datatype into_type, MPI_Comm comm)
{
    int64_t longest = 0;
    plan->from = from, plan->count = count, plan->into = into, plan->into_type = into_type,
    plan->run = run_allgatherv;
    if (!enter_any(plan, comm, OF_ALLGATHER))
        return 0;
    if (!has_both(&plan->in) || !shape_of(into_type, &plan->into_shape))
        return give_up(plan);
    for (int i = 0; i < plan->on->size; i++) {
        int64_t there = vector_count(&plan->in, i);
        longest = there > longest ? there : longest;
        if (there < 0)
            return give_up(plan);
    }
    if (!enter_bytes(plan, OF_ALLGATHER, shape_bytes(&plan->into_shape, longest)))
        return 0;
    if (from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &plan->shape)))
        return give_up(plan);
    /* This is the only algorithm for parts of different lengths. */
    plan->choice.algorithm = MULTI_LEADER;
    return 1;
}

static int plan_allgatherv(struct plan *plan, PARAMETERS(Allgatherv))
{
    plan->in = (struct vector){.counts = into_counts, .displs = into_displs};
    return enter_allgatherv(plan, from, count, type, into, into_type, comm);
}

static int plan_large_allgatherv(struct plan *plan, LARGE_PARAMETERS(Allgatherv))
{
    plan->in = (struct vector){.large_counts = into_counts, .large_displs = into_displs};
    return enter_allgatherv(plan, from, count, type, into, into_type, comm);
}
FORMS(Allgatherv, allgatherv);
LARGE_FORMS(Allgatherv, allgatherv, plan_large_allgatherv);
