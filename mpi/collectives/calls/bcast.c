/* Barrier and Bcast. See enter.h. */
#define _GNU_SOURCE
#include "collectives/algorithms/algorithms.h"
#include "collectives/calls/enter.h"

static int run_barrier(struct hierarchy *on, const struct plan *plan)
{
    (void)plan;
    return barrier_leaders(on);
}

static int plan_barrier(struct plan *plan, PARAMETERS(Barrier))
{
    plan->run = run_barrier;
    return enter_any(plan, comm, OF_BARRIER);
}
FORMS(Barrier, barrier);

static int run_bcast(struct hierarchy *on, const struct plan *plan)
{
    return bcast_segments(on, plan->into, (int)plan->count, &plan->shape, plan->root, plan->choice.segment);
}

static int plan_bcast(struct plan *plan, LARGE_PARAMETERS(Bcast))
{
    plan->into = buffer, plan->count = count, plan->root = root, plan->run = run_bcast;
    return enter(plan, comm, OF_BCAST, count, type) && (is_root(plan->on, root) || give_up(plan));
}
FORMS(Bcast, bcast);
LARGE_FORMS(Bcast, bcast, plan_bcast);
