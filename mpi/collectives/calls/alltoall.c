/* Alltoall, Alltoallv and Alltoallw. See enter.h. */
#define _GNU_SOURCE
#include "collectives/algorithms/algorithms.h"
#include "collectives/calls/columns.h"
#include "collectives/calls/enter.h"

#include <limits.h>
#include <stdlib.h>

/* Sends small blocks through one rank of each site. */
static int alltoall_small(struct hierarchy *on, const void *from, int64_t count, const struct shape *shape,
                          void *into, int64_t into_count, const struct shape *into_shape)
{
    int64_t length = (int64_t)into_count * into_shape->size;
    char *rows = malloc(2 * on->size * length + 1), *came = rows + on->size * length;
    int status = rows ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (from == MPI_IN_PLACE) {
        from = into;
        count = into_count;
        shape = into_shape;
    }
    for (int i = 0; i < on->size; i++)
        TRY(status, pack((const char *)from + (MPI_Aint)on->members[i] * count * shape->extent, count, shape,
                         rows + i * length, length));
    TRY(status, alltoall_leaders(on, rows, length, came));
    for (int i = 0; i < on->size; i++)
        TRY(status, unpack(came + i * length, length,
                           (char *)into + (MPI_Aint)on->members[i] * into_count * into_shape->extent,
                           into_count, into_shape));
    free(rows);
    return status;
}

static int run_alltoall(struct hierarchy *on, const struct plan *plan)
{
    const void *from = plan->from;
    int64_t count = plan->count, into_count = plan->into_count;
    struct shape shape = plan->shape, into_shape = plan->into_shape;
    if (plan->choice.algorithm == LEADERS)
        return alltoall_small(on, from, count, &shape, plan->into, into_count, &into_shape);
    struct columns out = {0}, in = {0};
    void *memory = NULL, *copy = NULL;
    int status = MPI_SUCCESS;
    /* With MPI_IN_PLACE, everything is sent from a copy. */
    if (from == MPI_IN_PLACE) {
        memory = elements(into_count * on->size, &into_shape, &copy);
        status = memory ? elements_copy(plan->into, copy, (int)into_count * on->size, &into_shape)
                        : MPI_ERR_NO_MEM;
        from = copy, count = into_count, shape = into_shape;
    }
    TRY(status, columns_even(&out, on, count, &shape));
    TRY(status, columns_even(&in, on, into_count, &into_shape));
    TRY(status, alltoall_direct(on, from, out.counts, out.displs, out.types, plan->into, in.counts, in.displs,
                                in.types));
    columns_free(&out);
    columns_free(&in);
    free(memory);
    return status;
}

static int plan_alltoall(struct plan *plan, LARGE_PARAMETERS(Alltoall))
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count,
    plan->run = run_alltoall;
    if (!enter(plan, comm, OF_ALLTOALL, into_count, into_type))
        return 0;
    plan->into_shape = plan->shape;
    if (from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &plan->shape)))
        return give_up(plan);
    /* The limit is in bytes because all ranks compute the same number of bytes. */
    return into_count * plan->into_shape.size * plan->on->size <= INT_MAX || give_up(plan);
}
FORMS(Alltoall, alltoall);
LARGE_FORMS(Alltoall, alltoall, plan_alltoall);

static int run_alltoallv(struct hierarchy *on, const struct plan *plan)
{
    struct columns out = {0}, in = {0};
    int status = columns_of(&out, on, &plan->out, plan->shape.extent, plan->shape.type);
    TRY(status, columns_of(&in, on, &plan->in, plan->into_shape.extent, plan->into_shape.type));
    TRY(status, alltoall_direct(on, plan->from, out.counts, out.displs, out.types, plan->into, in.counts,
                                in.displs, in.types));
    columns_free(&out);
    columns_free(&in);
    return status;
}

/* Whether all counts are valid. If not, the call goes to the MPI, which reports the error. */
static int are_counts(const struct vector *said, int size)
{
    int are = 1;
    for (int i = 0; i < size && are; i++)
        are = vector_count(said, i) >= 0;
    return are;
}

static int enter_alltoallv(struct plan *plan, const void *from, MPI_Datatype type, void *into,
                           MPI_Datatype into_type, MPI_Comm comm)
{
    plan->from = from, plan->into = into, plan->run = run_alltoallv;
    /* MPI requires that either every rank passes MPI_IN_PLACE or none does. */
    if (from == MPI_IN_PLACE || !enter_any(plan, comm, OF_ALLTOALL))
        return 0;
    return (has_both(&plan->out) && has_both(&plan->in) && are_counts(&plan->out, plan->on->size) &&
            are_counts(&plan->in, plan->on->size) && shape_of(type, &plan->shape) &&
            shape_of(into_type, &plan->into_shape)) ||
           give_up(plan);
}

static int plan_alltoallv(struct plan *plan, PARAMETERS(Alltoallv))
{
    plan->out = (struct vector){.counts = counts, .displs = displs};
    plan->in = (struct vector){.counts = into_counts, .displs = into_displs};
    return enter_alltoallv(plan, from, type, into, into_type, comm);
}

static int plan_large_alltoallv(struct plan *plan, LARGE_PARAMETERS(Alltoallv))
{
    plan->out = (struct vector){.large_counts = counts, .large_displs = displs};
    plan->in = (struct vector){.large_counts = into_counts, .large_displs = into_displs};
    return enter_alltoallv(plan, from, type, into, into_type, comm);
}
FORMS(Alltoallv, alltoallv);
LARGE_FORMS(Alltoallv, alltoallv, plan_large_alltoallv);

static int run_alltoallw(struct hierarchy *on, const struct plan *plan)
{
    struct columns out = {0}, in = {0};
    /* Displacements are in bytes, and the types are the program's. */
    int status = columns_of(&out, on, &plan->out, 1, handle.byte);
    TRY(status, columns_of(&in, on, &plan->in, 1, handle.byte));
    TRY(status, alltoall_direct(on, plan->from, out.counts, out.displs, plan->types, plan->into, in.counts,
                                in.displs, plan->into_types));
    columns_free(&out);
    columns_free(&in);
    return status;
}

static int enter_alltoallw(struct plan *plan, const void *from, const MPI_Datatype types[], void *into,
                           const MPI_Datatype into_types[], MPI_Comm comm)
{
    plan->from = from, plan->types = types, plan->into = into, plan->into_types = into_types,
    plan->run = run_alltoallw;
    if (from == MPI_IN_PLACE || !enter_any(plan, comm, OF_ALLTOALL))
        return 0;
    return (has_both(&plan->out) && has_both(&plan->in) && are_counts(&plan->out, plan->on->size) &&
            are_counts(&plan->in, plan->on->size) && types && into_types) ||
           give_up(plan);
}

static int plan_alltoallw(struct plan *plan, PARAMETERS(Alltoallw))
{
    plan->out = (struct vector){.counts = counts, .displs = displs};
    plan->in = (struct vector){.counts = into_counts, .displs = into_displs};
    return enter_alltoallw(plan, from, types, into, into_types, comm);
}

static int plan_large_alltoallw(struct plan *plan, LARGE_PARAMETERS(Alltoallw))
{
    plan->out = (struct vector){.large_counts = counts, .large_displs = displs};
    plan->in = (struct vector){.large_counts = into_counts, .large_displs = into_displs};
    return enter_alltoallw(plan, from, types, into, into_types, comm);
}
FORMS(Alltoallw, alltoallw);
LARGE_FORMS(Alltoallw, alltoallw, plan_large_alltoallw);
