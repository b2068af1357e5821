/* Reduce, Allreduce, Reduce_scatter, Scan and their variants. See enter.h. */
#define _GNU_SOURCE
#include "collectives/algorithms/algorithms.h"
#include "collectives/calls/enter.h"
#include "collectives/topology/hierarchy_cache.h"

#include <limits.h>
#include <stdlib.h>

static void reduction(struct plan *plan, const void *from, void *into, MPI_Count count, MPI_Op op)
{
    plan->from = from, plan->into = into, plan->count = count, plan->op = op;
}

static int run_reduce(struct hierarchy *on, const struct plan *plan)
{
    switch (plan->choice.algorithm) {
    case GATHERED:
        return reduce_gathered(on, plan->from, plan->into, (int)plan->count, &plan->shape, plan->op,
                               plan->root);
    case BLOCKS:
        return reduce_blocks(on, plan->from, plan->into, (int)plan->count, &plan->shape, plan->op,
                             plan->root);
    default:
        return reduce_segments(on, plan->from, plan->into, (int)plan->count, &plan->shape, plan->op,
                               plan->root, plan->choice.segment);
    }
}

static int plan_reduce(struct plan *plan, LARGE_PARAMETERS(Reduce))
{
    reduction(plan, from, into, count, op);
    plan->root = root, plan->run = run_reduce;
    return enter_reduction(plan, comm, OF_REDUCE, count, type, op) &&
           (is_root(plan->on, root) || give_up(plan));
}
FORMS(Reduce, reduce);
LARGE_FORMS(Reduce, reduce, plan_reduce);

static int run_allreduce(struct hierarchy *on, const struct plan *plan)
{
    const struct shape *shape = &plan->shape;
    int64_t segment = plan->choice.segment;
    if (plan->choice.algorithm == GATHERED)
        return reduce_gathered(on, plan->from, plan->into, (int)plan->count, shape, plan->op, -1);
    if (plan->choice.algorithm == BLOCKS)
        return allreduce_blocks(on, plan->from, plan->into, (int)plan->count, shape, plan->op, segment);
    /* Values that each run measures must not decide between this algorithm and those below, which may round
     * differently. */
    if (plan->choice.algorithm == MULTI_LEADER)
        return allreduce_multi_leader(on, plan->from, plan->into, (int)plan->count, shape, plan->op, segment,
                                      plan->choice.ahead);
    int hub = links_hub(on->links, on->sites, plan->count * shape->size);
    if (plan->choice.algorithm == SPLIT)
        return allreduce_split(on, plan->from, plan->into, (int)plan->count, shape, plan->op, hub, segment);
    if (hub >= 0)
        return allreduce_hub(on, plan->from, plan->into, (int)plan->count, shape, plan->op, hub, segment);
    return allreduce_segments(on, plan->from, plan->into, (int)plan->count, shape, plan->op, segment,
                              plan->choice.ahead);
}

static int plan_allreduce(struct plan *plan, LARGE_PARAMETERS(Allreduce))
{
    reduction(plan, from, into, count, op);
    plan->run = run_allreduce;
    return enter_reduction(plan, comm, OF_ALLREDUCE, count, type, op);
}
FORMS(Allreduce, allreduce);
LARGE_FORMS(Allreduce, allreduce, plan_allreduce);

static int reduce_scatter(struct hierarchy *on, const struct plan *plan, const int counts[])
{
    if (plan->choice.algorithm == BLOCKS)
        return reduce_scatter_blocks(on, plan->from, plan->into, counts, &plan->shape, plan->op);
    if (plan->choice.algorithm == MULTI_LEADER)
        return reduce_scatter_multi_leader(on, plan->from, plan->into, counts, &plan->shape, plan->op,
                                           plan->choice.segment);
    return reduce_scatter_leaders(on, plan->from, plan->into, counts, &plan->shape, plan->op);
}

/* Returns the number of blocks, one for each rank, or 0 if the operation is not improved anyway. */
static int blocks(MPI_Comm comm)
{
    int size = 0;
    return hierarchy_wanted() && comm != handle.comm_null && real.Comm_size(comm, &size) == MPI_SUCCESS ? size
                                                                                                        : 0;
}

static int run_reduce_scatter(struct hierarchy *on, const struct plan *plan)
{
    if (plan->out.counts)
        return reduce_scatter(on, plan, plan->out.counts);
    int *counts = malloc(on->size * sizeof *counts);
    for (int i = 0; counts && i < on->size; i++)
        counts[i] = (int)plan->out.large_counts[i];
    int status = counts ? reduce_scatter(on, plan, counts) : MPI_ERR_NO_MEM;
    free(counts);
    return status;
}

static int enter_reduce_scatter(struct plan *plan, const void *from, void *into, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm)
{
    int size = blocks(comm);
    int64_t all = 0;
    reduction(plan, from, into, 0, op);
    plan->run = run_reduce_scatter;
    if (!size || !has_counts(&plan->out))
        return 0;
    for (int i = 0; i < size && all >= 0 && all <= INT_MAX; i++) {
        int64_t count = vector_count(&plan->out, i);
        all = count < 0 ? -1 : count > INT_MAX ? count : all + count;
    }
    return all <= INT_MAX && enter_reduction(plan, comm, OF_REDUCE_SCATTER, all, type, op);
}

static int plan_reduce_scatter(struct plan *plan, PARAMETERS(Reduce_scatter))
{
    plan->out.counts = counts;
    return enter_reduce_scatter(plan, from, into, type, op, comm);
}

static int plan_large_reduce_scatter(struct plan *plan, LARGE_PARAMETERS(Reduce_scatter))
{
    plan->out.large_counts = counts;
    return enter_reduce_scatter(plan, from, into, type, op, comm);
}
FORMS(Reduce_scatter, reduce_scatter);
LARGE_FORMS(Reduce_scatter, reduce_scatter, plan_large_reduce_scatter);

static int run_reduce_scatter_block(struct hierarchy *on, const struct plan *plan)
{
    int *counts = malloc(on->size * sizeof *counts);
    for (int i = 0; counts && i < on->size; i++)
        counts[i] = (int)plan->count;
    int status = counts ? reduce_scatter(on, plan, counts) : MPI_ERR_NO_MEM;
    free(counts);
    return status;
}

static int plan_reduce_scatter_block(struct plan *plan, LARGE_PARAMETERS(Reduce_scatter_block))
{
    int size = blocks(comm);
    reduction(plan, from, into, count, op);
    plan->run = run_reduce_scatter_block;
    return size && count <= INT_MAX && enter_reduction(plan, comm, OF_REDUCE_SCATTER, count * size, type, op);
}
FORMS(Reduce_scatter_block, reduce_scatter_block);
LARGE_FORMS(Reduce_scatter_block, reduce_scatter_block, plan_reduce_scatter_block);

static int run_scan(struct hierarchy *on, const struct plan *plan)
{
    switch (plan->choice.algorithm) {
    case LEADERS:
    case SEGMENTS:
        return scan_segments(on, plan->from, plan->into, (int)plan->count, &plan->shape, plan->op,
                             plan->inclusive, plan->choice.segment, plan->choice.ahead);
    case DIRECT:
        return scan_direct(on, plan->from, plan->into, (int)plan->count, &plan->shape, plan->op,
                           plan->inclusive);
    case BLOCKS:
        return scan_blocks(on, plan->from, plan->into, (int)plan->count, &plan->shape, plan->op,
                           plan->inclusive);
    default:
        return scan_gathered(on, plan->from, plan->into, (int)plan->count, &plan->shape, plan->op,
                             plan->inclusive);
    }
}

static int plan_scan(struct plan *plan, LARGE_PARAMETERS(Scan))
{
    reduction(plan, from, into, count, op);
    plan->inclusive = 1, plan->run = run_scan;
    return enter_reduction(plan, comm, OF_SCAN, count, type, op);
}
FORMS(Scan, scan);
LARGE_FORMS(Scan, scan, plan_scan);

static int plan_exscan(struct plan *plan, LARGE_PARAMETERS(Exscan))
{
    reduction(plan, from, into, count, op);
    plan->run = run_scan;
    return enter_reduction(plan, comm, OF_SCAN, count, type, op);
}
FORMS(Exscan, exscan);
LARGE_FORMS(Exscan, exscan, plan_exscan);
