#define _GNU_SOURCE
#include "collectives/async/task.h"

#include "collectives/async/completion.h"
#include "collectives/async/plan_lifetime.h"
#include "collectives/async/progress.h"
#include "collectives/binding/fatal.h"
#include "collectives/topology/hierarchy_cache.h"
#include "collectives/transfer/waiting.h"
#include "common/coroutine/coroutine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct task {
    /* First: its address is the task's. */
    struct coroutine coroutine;
    struct task *next;
    struct plan *plan;
    /* The plan's hierarchy, with tags of this task's own. */
    struct hierarchy on;
    int completion;
    /* The request that the task waits for, and what becomes known of it. */
    MPI_Request *awaits;
    MPI_Status *received;
    int status, has_begun;
};

/* Held while tasks are resumed: by one thread at a time, and not again from inside the MPI's calls that tasks
 * make. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
/* Guards the list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task *tasks;

/* What runs on a task's stack. */
static void body(struct coroutine *coroutine)
{
    struct task *task = (struct task *)coroutine;
    task->status = task->plan->run(&task->on, task->plan);
}

static int is_task(void) { return coroutine_current() != NULL; }

/* Switches back to the scheduler, until the request is complete. */
static int wait_as_task(MPI_Request *request, MPI_Status *received)
{
    struct task *task = (struct task *)coroutine_current();
    int status;
    if (progress_completes(request, received, &status))
        return status;
    task->awaits = request;
    task->received = received;
    coroutine_leave();
    return task->status;
}

static void finish(struct task *task)
{
    pthread_mutex_lock(&lock);
    struct task **at = &tasks;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    pthread_mutex_unlock(&lock);
    /* The program may go on from here, and free what it named. */
    completion_send(task->completion, task->plan->on, task->status);
    if (task->plan->form == NONBLOCKING)
        completion_free(task->completion, NULL);
    plan_release(task->plan);
    atomic_fetch_sub(&progress_users, 1);
    free(task);
}

/* Whether no earlier task has the same tags. So many may be under way that tags are used again: then the
 * earlier one comes first. */
static int has_its_tags(const struct task *task)
{
    int is_first = 1;
    pthread_mutex_lock(&lock);
    for (const struct task *other = tasks; other != task; other = other->next)
        is_first &= other->on.across != task->on.across || other->on.tags != task->on.tags;
    pthread_mutex_unlock(&lock);
    return is_first;
}

/* Gives a task its stack. False where the task must wait: for another with its tags, or for memory, until
 * another has ended. */
static int begin(struct task *task) { return has_its_tags(task) && coroutine_begin(&task->coroutine, body); }

static int may_go_on(struct task *task)
{
    if (!task->has_begun)
        return task->has_begun = begin(task);
    return progress_completes(task->awaits, task->received, &task->status);
}

/* Resumes each task that has nothing more to wait for. Returns how many. */
static int run(void)
{
    if (pthread_mutex_trylock(&running))
        return 0;
    int taken_up = 0, was_inside = hierarchy_inside(1);
    pthread_mutex_lock(&lock);
    struct task *task = tasks;
    pthread_mutex_unlock(&lock);
    while (task) {
        int goes_on = may_go_on(task);
        if (goes_on)
            coroutine_resume(&task->coroutine);
        pthread_mutex_lock(&lock);
        struct task *next = task->next;
        pthread_mutex_unlock(&lock);
        if (task->coroutine.is_over)
            finish(task);
        taken_up += goes_on;
        task = next;
    }
    hierarchy_inside(was_inside);
    pthread_mutex_unlock(&running);
    return taken_up;
}

static int all_have_hooks;

void tasks_agree(void)
{
    static const struct waiting beside = {.is_beside = is_task, .wait = wait_as_task};
    int size, all = 1;
    waiting_use(&beside);
    progress_use(run);
    progress_find();
    if (real.Comm_size(handle.comm_world, &size))
        return;
    char own = (char)progress_is_there(), *each = must_have(malloc((size_t)size));
    all &= real.Allgather(&own, 1, handle.byte, each, 1, handle.byte, handle.comm_world) == MPI_SUCCESS;
    for (int i = 0; i < size; i++)
        all &= each[i];
    free(each);
    all_have_hooks = all;
}

int tasks_possible(void) { return all_have_hooks; }

int task_start(struct plan *plan, int completion)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        return MPI_ERR_NO_MEM;
    /* Counted first: a hook that finds no task ends. */
    atomic_fetch_add(&progress_users, 1);
    int status = progress_join();
    if (status != MPI_SUCCESS) {
        atomic_fetch_sub(&progress_users, 1);
        free(task);
        return status;
    }
    task->plan = plan;
    plan_hold(plan);
    task->on = *plan->on;
    task->on.tags = plan->tags;
    task->completion = completion;
    pthread_mutex_lock(&lock);
    struct task **end = &tasks;
    while (*end)
        end = &(*end)->next;
    *end = task;
    pthread_mutex_unlock(&lock);
    run();
    return MPI_SUCCESS;
}

static int is_under_way(const struct hierarchy *on)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (const struct task *task = tasks; task; task = task->next)
        found |= task->plan->on == on;
    pthread_mutex_unlock(&lock);
    return found;
}

void tasks_finish(const struct hierarchy *on)
{
    /* No message has this tag. The call lets the MPI make progress. */
    for (int there; is_under_way(on);)
        real.Iprobe(0, 0, on->across, &there, MPI_STATUS_IGNORE);
}

/* The plan of any task, held; NULL where there is none. */
static struct plan *any_plan(void)
{
    pthread_mutex_lock(&lock);
    struct plan *plan = tasks ? tasks->plan : NULL;
    if (plan)
        plan_hold(plan);
    pthread_mutex_unlock(&lock);
    return plan;
}

void tasks_finish_all(void)
{
    for (struct plan *plan; (plan = any_plan());) {
        tasks_finish(plan->on);
        plan_release(plan);
    }
}

void tasks_end(void)
{
    progress_leave();
    coroutines_end();
}
