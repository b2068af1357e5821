#define _GNU_SOURCE
#include "collectives/async/task.h"

#include "collectives/async/completion.h"
#include "collectives/async/plan_lifetime.h"
#include "collectives/async/progress.h"
#include "collectives/binding/fatal.h"
#include "collectives/topology/hierarchy_cache.h"
#include "collectives/transfer/waiting.h"
#include "common/tasks/tasks.h"

#include <stdlib.h>

/* A task that runs a plan. */
struct planned {
    /* First, because its address is the task's. */
    struct task task;
    struct plan *plan;
    /* A copy of the plan's hierarchy, with this task's own tags. */
    struct hierarchy on;
    int completion, status;
};

static void run_plan(struct task *task)
{
    struct planned *planned = (struct planned *)task;
    planned->status = planned->plan->run(&planned->on, planned->plan);
}

static int has_same_tags(const struct task *task, const struct task *earlier)
{
    const struct hierarchy *on = &((const struct planned *)task)->on;
    const struct hierarchy *other = &((const struct planned *)earlier)->on;
    return on->across == other->across && on->tags == other->tags;
}

static void end(struct task *task)
{
    struct planned *planned = (struct planned *)task;
    /* From here on the program may continue, and free the handles it passed. */
    completion_send(planned->completion, planned->plan->on, planned->status);
    if (planned->plan->form == NONBLOCKING)
        completion_free(planned->completion, NULL);
    plan_release(planned->plan);
    free(planned);
}

static const struct task_kind kind = {.run = run_plan, .has_same_tags = has_same_tags, .end = end};

static int is_task(void) { return task_running() != NULL; }

/* The request that a task waits for, and its outcome. */
struct awaited {
    MPI_Request *request;
    MPI_Status *received;
    int status;
};

static int is_complete(void *of)
{
    struct awaited *awaited = of;
    return progress_completes(awaited->request, awaited->received, &awaited->status);
}

static int wait_as_task(MPI_Request *request, MPI_Status *received)
{
    struct awaited awaited = {.request = request, .received = received};
    if (!is_complete(&awaited))
        task_await(is_complete, &awaited);
    return awaited.status;
}

static int run(void)
{
    int was_inside = hierarchy_inside(1), taken_up = tasks_run();
    hierarchy_inside(was_inside);
    return taken_up;
}

static int all_have_hooks;

int tasks_find(void)
{
    progress_find(run);
    return progress_is_there();
}

void tasks_allow(int have_hooks)
{
    static const struct waiting beside = {.is_beside = is_task, .wait = wait_as_task};
    waiting_use(&beside);
    all_have_hooks = have_hooks;
}

int tasks_ask_all(void)
{
    int size, all = 1;
    if (real.Comm_size(handle.comm_world, &size))
        return 0;
    char own = (char)progress_is_there(), *each = must_have(malloc((size_t)size));
    all &= real.Allgather(&own, 1, handle.byte, each, 1, handle.byte, handle.comm_world) == MPI_SUCCESS;
    for (int i = 0; i < size; i++)
        all &= each[i];
    free(each);
    return all;
}

int tasks_possible(void) { return all_have_hooks; }

int task_start(struct plan *plan, int completion)
{
    struct planned *planned = calloc(1, sizeof *planned);
    if (!planned)
        return MPI_ERR_NO_MEM;
    *planned = (struct planned){.task.kind = &kind, .plan = plan, .on = *plan->on, .completion = completion};
    planned->on.tags = plan->tags;
    plan_hold(plan);
    int status = tasks_add(&planned->task, progress_join);
    if (status != MPI_SUCCESS) {
        plan_release(plan);
        free(planned);
        return status;
    }
    run();
    return MPI_SUCCESS;
}

static int is_on(struct task *task, void *of) { return ((const struct planned *)task)->plan->on == of; }

void tasks_finish(const struct hierarchy *on)
{
    /* No message has this tag; the call only lets the MPI make progress. */
    for (int there; tasks_visit(is_on, (void *)on);)
        real.Iprobe(0, 0, on->across, &there, MPI_STATUS_IGNORE);
}

/* Takes a reference to the plan of the first task in the list. */
static int hold_plan(struct task *task, void *of)
{
    struct plan *plan = ((struct planned *)task)->plan;
    plan_hold(plan);
    *(struct plan **)of = plan;
    return 1;
}

void tasks_finish_all(void)
{
    for (struct plan *plan; tasks_visit(hold_plan, &plan);) {
        tasks_finish(plan->on);
        plan_release(plan);
    }
}

void tasks_end(void)
{
    progress_leave();
    coroutines_end();
}
