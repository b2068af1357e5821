/* Operations that run in the background. Each is a task: a coroutine that runs the blocking form. Where that
 * would wait, the task leaves its stack, and progress() resumes it. The program has a generalised request,
 * which every completion call accepts. */
#ifndef CAUSEWAY_WORLD_TASK_H
#define CAUSEWAY_WORLD_TASK_H

#include "common/tasks/tasks.h"
#include "world/native/far.h"

/* What a task does. `run` returns an MPI error code, and calls no error handler: completion calls do. */
struct work {
    int (*run)(void *of);
    /* Frees `of` when the task has ended. */
    void (*end)(void *of);
    void *of;
};

/* Starts a task on this communicator; all its ranks start the same ones in the same order. If it fails,
 * nothing has begun, and work->end is not called. */
int task_start(struct comm *comm, const struct work *work, MPI_Request *request);

/* The same for a task of this rank alone, which needs no tags: other ranks know nothing of it. */
int task_start_alone(struct comm *comm, const struct work *work, MPI_Request *request);
/* Reports a message that the running task has received in the status of its request. */
void task_receives(const MPI_Status *status);

/* The number that a running task adds to the tags of messages on hidden communicators, so that operations
 * which run at the same time do not receive each other's messages. 0 outside of tasks. */
int task_tags(void);

/* Frees the stacks that are kept; called in MPI_Finalize. */
void tasks_end(void);

#endif
