#define _GNU_SOURCE
#include "collectives/calls/enter.h"

#include "collectives/async/completion.h"
#include "collectives/async/persistent.h"
#include "collectives/async/plan_lifetime.h"
#include "collectives/async/task.h"
#include "collectives/topology/hierarchy_cache.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/copies.h"
#include "common/binding/texts.h"

#include <limits.h>

int give_up(struct plan *plan)
{
    if (plan->on)
        hierarchy_leave(plan->on, MPI_SUCCESS);
    plan->on = NULL;
    return 0;
}

static struct hierarchy *hierarchy_for(const struct plan *plan, MPI_Comm comm)
{
    /* Making a communicator's hierarchy makes ranks wait for each other, which a non-blocking call must not
     * do. */
    if (plan->form != BLOCKING &&
        (!tasks_possible() || (plan->form == NONBLOCKING && !hierarchy_known(comm))))
        return NULL;
    struct hierarchy *on = hierarchy_enter(comm);
    if (on)
        copies_reap(0);
    return on;
}

static struct choice choose_on(const struct hierarchy *on, enum operation operation, int64_t bytes,
                               int commutes)
{
    struct layout layout = {.ranks = on->size,
                            .sites = on->sites,
                            .largest = on->largest,
                            .in_order = on->in_order,
                            .commutes = commutes};
    return choose(layout, operation, bytes);
}

/* Where sites may give different lengths for the same text, each rank's part is a message of its own, and no
 * choice depends on the length. */
static void choose_for_texts(struct choice *choice, enum operation operation)
{
    choice->segment = MAX_BYTES;
    if (operation == OF_ALLGATHER)
        choice->algorithm = MULTI_LEADER;
    else if (operation != OF_BCAST)
        choice->algorithm = DIRECT;
}

/* Whether the world library forbids this reduction, between sites with different processors. */
static int is_forbidden(MPI_Datatype type, MPI_Op op)
{
    static int (*forbids)(MPI_Datatype, MPI_Op);
    static int was_sought;
    if (!was_sought) {
        forbids = (int (*)(MPI_Datatype, MPI_Op))mpi_calls_of_world("causeway_world_forbids");
        was_sought = 1;
    }
    return forbids && forbids(type, op);
}

/* The MPI below knows which operations a type supports, and all ranks can ask it: it refuses an unsupported
 * one even for 0 elements. */
static int is_combined(MPI_Datatype type, MPI_Op op)
{
    char in[1] = {0}, into[1] = {0};
    return !is_forbidden(type, op) && real.Reduce_local(in, into, 0, type, op) == MPI_SUCCESS;
}

/* `op` is the operation of a reduction, otherwise NULL. If it does not commute, the order of ranks must be
 * kept. */
static int enter_with(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count,
                      MPI_Datatype type, const MPI_Op *op)
{
    int commutes = 1;
    plan->on = op && *op == handle.op_null ? NULL : hierarchy_for(plan, comm);
    if (!plan->on)
        return 0;
    if (count < 0 || count > INT_MAX || !shape_of(type, &plan->shape) ||
        (op && (real.Op_commutative(*op, &commutes) || !is_combined(type, *op))))
        return give_up(plan);
    int64_t bytes = shape_bytes(&plan->shape, count);
    plan->choice = choose_on(plan->on, operation, bytes, commutes);
    if (!op && plan->choice.algorithm != NATIVE && texts_may_differ(bytes))
        choose_for_texts(&plan->choice, operation);
    return plan->choice.algorithm == NATIVE ? give_up(plan) : 1;
}

int enter(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type)
{
    return enter_with(plan, comm, operation, count, type, NULL);
}

int enter_reduction(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count,
                    MPI_Datatype type, MPI_Op op)
{
    return enter_with(plan, comm, operation, count, type, &op);
}

int enter_any(struct plan *plan, MPI_Comm comm, enum operation operation)
{
    plan->on = hierarchy_for(plan, comm);
    if (!plan->on)
        return 0;
    return choose_on(plan->on, operation, 0, 1).algorithm == NATIVE ? give_up(plan) : 1;
}

int enter_bytes(struct plan *plan, enum operation operation, int64_t bytes)
{
    plan->choice = choose_on(plan->on, operation, bytes, 1);
    return plan->choice.algorithm == NATIVE ? give_up(plan) : 1;
}

int plan_tags(struct plan *plan)
{
    plan->tags = tags_take(plan->on, plan->form == PERSISTENT);
    return plan->tags >= 0 || give_up(plan);
}

int plan_do(struct plan *plan) { return hierarchy_leave(plan->on, plan->run(plan->on, plan)); }

int plan_begin(struct plan *plan, MPI_Request *request)
{
    struct hierarchy *on = plan->on;
    int completion = 0;
    struct plan *copy = plan_copy(plan);
    int status = copy ? completion_make(&completion, request, 0) : MPI_ERR_NO_MEM;
    if (status == MPI_SUCCESS) {
        status = task_start(copy, completion);
        if (status != MPI_SUCCESS)
            completion_free(completion, request);
    }
    if (copy)
        plan_release(copy);
    return hierarchy_leave(on, status);
}

int plan_keep(struct plan *plan, MPI_Request *request)
{
    struct hierarchy *on = plan->on;
    return hierarchy_leave(on, persistent_make(plan, request));
}
