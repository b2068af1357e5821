/* Operations that go on beside the program. Each is a task: a coroutine that runs the blocking
 * form. Where that would wait the task leaves its stack; progress() resumes it. The program has a generalised
 * request, which every completion call takes. */
#ifndef CAUSEWAY_WORLD_TASK_H
#define CAUSEWAY_WORLD_TASK_H

#include "common/tasks/tasks.h"
#include "world/native/far.h"

/* What a task does. It gives an MPI's code, and calls no error handler: completion calls do. */
struct work {
    int (*run)(void *of);
    /* Frees `of`, when the task is over. */
    void (*end)(void *of);
    void *of;
};

/* Starts a task of this communicator; all its ranks start the same ones in the same order. Where it fails
 * nothing has begun, and `work` is not ended. */
int task_start(struct comm *comm, const struct work *work, MPI_Request *request);

/* The same of this rank's own, which needs no tags: others know nothing of it. */
int task_start_alone(struct comm *comm, const struct work *work, MPI_Request *request);
/* The running task has received this: its request's status says so. */
void task_receives(const MPI_Status *status);

/* What a running task adds to the tags of messages on hidden communicators, so that operations which are
 * under way at the same time do not take each other's. 0 outside of tasks. */
int task_tags(void);

/* Frees the stacks that are kept, in MPI_Finalize. */
void tasks_end(void);

#endif
