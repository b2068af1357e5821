#include "common/tasks/tasks.h"

#include <pthread.h>

/* Held while tasks are resumed: only one thread resumes them at a time, and not recursively from MPI calls
 * that tasks make. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
/* Guards the list, which is in the order in which tasks were added. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task *tasks;

atomic_int tasks_count;

int tasks_add(struct task *task, int (*join)(void))
{
    atomic_fetch_add(&tasks_count, 1);
    int status = join ? join() : 0;
    if (status != 0) {
        atomic_fetch_sub(&tasks_count, 1);
        return status;
    }
    pthread_mutex_lock(&lock);
    struct task **end = &tasks;
    while (*end)
        end = &(*end)->next;
    *end = task;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* The function that runs on a task's stack. */
static void body(struct coroutine *coroutine)
{
    struct task *task = (struct task *)coroutine;
    task->kind->run(task);
}

static int has_its_tags(const struct task *task)
{
    int is_first = 1;
    pthread_mutex_lock(&lock);
    for (const struct task *other = tasks; other != task; other = other->next)
        is_first &= !task->kind->has_same_tags(task, other);
    pthread_mutex_unlock(&lock);
    return is_first;
}

/* A task gets its stack when it begins. If another task has its tags, or memory is exhausted, it first waits
 * until another has ended. */
static int may_go_on(struct task *task)
{
    if (!task->has_begun)
        return task->has_begun = has_its_tags(task) && coroutine_begin(&task->coroutine, body);
    return task->is_over(task->awaits);
}

static void end(struct task *task)
{
    pthread_mutex_lock(&lock);
    struct task **at = &tasks;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    pthread_mutex_unlock(&lock);
    task->kind->end(task);
    atomic_fetch_sub(&tasks_count, 1);
}

/* Resumes a task if it has nothing left to wait for. Returns whether it did. */
static int take_up(struct task *task)
{
    if (!may_go_on(task))
        return 0;
    coroutine_resume(&task->coroutine);
    return 1;
}

void tasks_begin(struct task *task)
{
    if (pthread_mutex_trylock(&running))
        return;
    take_up(task);
    if (task->coroutine.is_over)
        end(task);
    pthread_mutex_unlock(&running);
}

int tasks_run(void)
{
    /* Most calls find no tasks. */
    if (!tasks_are_under_way() || pthread_mutex_trylock(&running))
        return 0;
    int taken_up = 0;
    pthread_mutex_lock(&lock);
    struct task *task = tasks;
    pthread_mutex_unlock(&lock);
    while (task) {
        taken_up += take_up(task);
        pthread_mutex_lock(&lock);
        struct task *next = task->next;
        pthread_mutex_unlock(&lock);
        if (task->coroutine.is_over)
            end(task);
        task = next;
    }
    pthread_mutex_unlock(&running);
    return taken_up;
}

int tasks_visit(int (*visit)(struct task *task, void *of), void *of)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (struct task *task = tasks; task && !found; task = task->next)
        found = visit(task, of);
    pthread_mutex_unlock(&lock);
    return found;
}

void task_await(int (*is_over)(void *of), void *of)
{
    struct task *task = task_running();
    task->is_over = is_over;
    task->awaits = of;
    coroutine_leave();
}
