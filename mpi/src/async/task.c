#define _GNU_SOURCE
#include "async/task.h"

#include "async/completion.h"
#include "async/plan_lifetime.h"
#include "async/progress.h"
#include "binding/fatal.h"
#include "topology/hierarchy_cache.h"
#include "transfer/waiting.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Size of a task's stack. The MPI's own calls and the program's reductions run on it. Only what is touched
 * takes memory. */
#define STACK_BYTES (2 << 20)
/* So many stacks are kept for the next tasks. */
#define MAX_STACKS 16

struct task {
    struct task *next;
    struct plan *plan;
    /* The plan's hierarchy, with tags of this task's own. */
    struct hierarchy on;
    int completion;
    /* The request that the task waits for. */
    MPI_Request *awaits;
    int status, has_begun, is_over;
    char *stack;
    /* Where the task goes on, and where the scheduler does. */
    ucontext_t own, back;
};

/* Held while tasks are resumed: by one thread at a time, and not again from inside the MPI's calls that tasks
 * make. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
/* Guards the three below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task *tasks;
static char *stacks[MAX_STACKS];
static int stack_count;

static _Thread_local struct task *current __attribute__((tls_model("initial-exec")));

/* A task may go on in another thread than it stopped in. So nothing may keep the address of `current` across
 * a switch of stacks: these two are functions that the compiler does not look into. */
__attribute__((noinline)) static struct task *current_task(void)
{
    __asm__ volatile("");
    return current;
}

__attribute__((noinline)) static void set_current(struct task *task)
{
    __asm__ volatile("");
    current = task;
}

static char *take_stack(void)
{
    pthread_mutex_lock(&lock);
    char *stack = stack_count ? stacks[--stack_count] : NULL;
    pthread_mutex_unlock(&lock);
    if (stack)
        return stack;
    stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    /* An overflow ends the program where it happens. */
    mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    return stack;
}

static void leave_stack(char *stack)
{
    pthread_mutex_lock(&lock);
    int is_kept = stack_count < MAX_STACKS;
    if (is_kept)
        stacks[stack_count++] = stack;
    pthread_mutex_unlock(&lock);
    if (!is_kept)
        munmap(stack, STACK_BYTES);
}

/* What runs on a task's stack. */
static void body(void)
{
    struct task *task = current_task();
    task->status = task->plan->run(&task->on, task->plan);
    task->is_over = 1;
    swapcontext(&task->own, &task->back);
}

/* Switches to a task's stack, until the task waits or is over. */
static void resume(struct task *task)
{
    set_current(task);
    swapcontext(&task->back, &task->own);
    set_current(NULL);
}

static int is_task(void) { return current_task() != NULL; }

/* Switches back to the scheduler, until the request is complete. */
static int wait_as_task(MPI_Request *request)
{
    struct task *task = current_task();
    int status;
    if (progress_completes(request, &status))
        return status;
    task->awaits = request;
    swapcontext(&task->own, &task->back);
    return task->status;
}

static void finish(struct task *task)
{
    leave_stack(task->stack);
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
static int begin(struct task *task)
{
    if (!has_its_tags(task) || !(task->stack = take_stack()))
        return 0;
    getcontext(&task->own);
    task->own.uc_stack.ss_sp = task->stack;
    task->own.uc_stack.ss_size = STACK_BYTES;
    makecontext(&task->own, body, 0);
    return 1;
}

static int may_go_on(struct task *task)
{
    if (!task->has_begun)
        return task->has_begun = begin(task);
    return progress_completes(task->awaits, &task->status);
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
            resume(task);
        pthread_mutex_lock(&lock);
        struct task *next = task->next;
        pthread_mutex_unlock(&lock);
        if (task->is_over)
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
    while (stack_count)
        munmap(stacks[--stack_count], STACK_BYTES);
}
