/* A scheduler of coroutines, for operations that go on beside the program. Each operation is a task: where it
 * would wait it leaves its stack. The scheduler has no thread of its own: it runs in calls in which the
 * program waits or asks, and resumes each task that has nothing more to wait for. */
#ifndef CAUSEWAY_TASKS_H
#define CAUSEWAY_TASKS_H

#include "common/tasks/coroutine.h"

#include <stdatomic.h>
#include <stddef.h>

struct task;

struct task_kind {
    /* What it does, on a stack of its own. */
    void (*run)(struct task *task);
    /* Whether a task that was added before, and is not over, has the same tags. So many may be under way that
     * tags are used again: then the earlier one ends first. */
    int (*has_same_tags)(const struct task *task, const struct task *earlier);
    /* It is over, and in no list. Frees it. */
    void (*end)(struct task *task);
};

/* The first member of what a library knows of its task; `kind` is set, and the rest is zero. */
struct task {
    /* First: its address is the task's. */
    struct coroutine coroutine;
    const struct task_kind *kind;
    struct task *next;
    int has_begun;
    int (*is_over)(void *of);
    void *awaits;
};

/* How many are not over. */
extern atomic_int tasks_count;

/* Counts a task, calls `join`, and adds the task where that returns 0, which is 0 for success in every MPI.
 * Counted first, since a hook that finds no task ends. Returns what `join` does; NULL: 0. */
int tasks_add(struct task *task, int (*join)(void));

/* Begins a task that this thread has just added, where nothing stands in its way; tasks_run does so later.
 * Others are left as they are: a program may have many, and starts them one by one. Only for a library
 * whose calls come from one thread at a time: in another thread tasks_run may have ended the task. */
void tasks_begin(struct task *task);

/* Resumes each that has nothing more to wait for, and returns how many. Does nothing while another thread
 * does so, or where a task's own call of the MPI has led here. */
int tasks_run(void);

/* Calls `visit` with each task in the order in which they were added, until it returns something else than 0,
 * and returns that. It must call nothing of this file. */
int tasks_visit(int (*visit)(struct task *task, void *of), void *of);

/* The running task of this thread; NULL outside of any. */
static inline struct task *task_running(void) { return (struct task *)coroutine_current(); }

static inline int tasks_are_under_way(void)
{
    return atomic_load_explicit(&tasks_count, memory_order_relaxed) > 0;
}

/* Whether a task runs, which must not block: it waits by task_await. */
static inline int task_is_running(void) { return tasks_are_under_way() && task_running() != NULL; }

/* Leaves the running task's stack until `is_over` says so, which is not asked again then. */
void task_await(int (*is_over)(void *of), void *of);

#endif
