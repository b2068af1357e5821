/* A scheduler of coroutines, for operations that run in the background. Each operation is a task: where it
 * would wait, it leaves its stack. The scheduler has no thread of its own: it runs in calls in which the
 * program waits or tests, and resumes each task that has nothing left to wait for. */
#ifndef CAUSEWAY_TASKS_H
#define CAUSEWAY_TASKS_H

#include "common/tasks/coroutine.h"

#include <stdatomic.h>
#include <stddef.h>

struct task;

struct task_kind {
    /* Does the task's work, on a stack of its own. */
    void (*run)(struct task *task);
    /* Whether a task that was added earlier, and has not ended, has the same tags. With very many tasks, tags
     * are reused: then the later task waits until the earlier one has ended. */
    int (*has_same_tags)(const struct task *task, const struct task *earlier);
    /* Frees a task that has ended and is no longer in the list. */
    void (*end)(struct task *task);
};

/* The first member of the structure in which a library describes its task. The library sets `kind`, and
 * zeroes the rest. */
struct task {
    /* First, because its address is the task's. */
    struct coroutine coroutine;
    const struct task_kind *kind;
    struct task *next;
    int has_begun;
    int (*is_over)(void *of);
    void *awaits;
};

/* The number of tasks that have not ended. */
extern atomic_int tasks_count;

/* Counts a task, calls `join`, and adds the task if that returns 0, which means success in every MPI. The
 * task is counted first because a hook that finds no task removes itself. Returns the result of `join`, or 0
 * if that is NULL. */
int tasks_add(struct task *task, int (*join)(void));

/* Begins a task that this thread has just added, if nothing prevents it; otherwise tasks_run begins it later.
 * Does not touch other tasks: a program may have many, and starts them one by one. Only for a library that is
 * called from one thread at a time: otherwise tasks_run in another thread may have ended the task. */
void tasks_begin(struct task *task);

/* Resumes each task that has nothing left to wait for, and returns how many it resumed. Does nothing while
 * another thread is resuming tasks, or if a task's own MPI call has led here. */
int tasks_run(void);

/* Calls `visit` with each task, in the order in which they were added, until it returns a value other than 0,
 * and returns that value. `visit` must not call functions of this file. */
int tasks_visit(int (*visit)(struct task *task, void *of), void *of);

/* The task that is running in this thread; NULL outside of any. */
static inline struct task *task_running(void) { return (struct task *)coroutine_current(); }

static inline int tasks_are_under_way(void)
{
    return atomic_load_explicit(&tasks_count, memory_order_relaxed) > 0;
}

/* Whether the caller is a task, which must not block: it waits with task_await. */
static inline int task_is_running(void) { return tasks_are_under_way() && task_running() != NULL; }

/* Leaves the running task's stack until `is_over` returns true; it is not called again after that. */
void task_await(int (*is_over)(void *of), void *of);

#endif
