#define _GNU_SOURCE
#include "calls/enter.h"

#include "async/task.h"

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
    /* Making them waits for other ranks, which a call that does not wait may not. */
    if (plan->form != BLOCKING && (!tasks_possible() || (plan->form == NONBLOCKING && !hierarchy_known(comm))))
        return NULL;
    return hierarchy_enter(comm);
}

/* `op`: a reduction's, whose order of ranks must be kept where it does not commute. */
static int enter_with(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type, const MPI_Op *op)
{
    int commutes = 1;
    plan->on = op && *op == handle.op_null ? NULL : hierarchy_for(plan, comm);
    if (!plan->on)
        return 0;
    if (count < 0 || count > INT_MAX || !shape_of(type, &plan->shape) || (op && real.Op_commutative(*op, &commutes)))
        return give_up(plan);
    plan->choice = choose(plan->on, operation, shape_bytes(&plan->shape, count), commutes);
    return plan->choice.algorithm == NATIVE ? give_up(plan) : 1;
}

int enter(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type)
{
    return enter_with(plan, comm, operation, count, type, NULL);
}

int enter_reduction(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type, MPI_Op op)
{
    return enter_with(plan, comm, operation, count, type, &op);
}

int enter_any(struct plan *plan, MPI_Comm comm, enum operation operation)
{
    plan->on = hierarchy_for(plan, comm);
    if (!plan->on)
        return 0;
    return choose(plan->on, operation, 0, 1).algorithm == NATIVE ? give_up(plan) : 1;
}

int plan_do(struct plan *plan)
{
    return hierarchy_leave(plan->on, plan->run(plan->on, plan));
}
