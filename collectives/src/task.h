/* Operations that go on beside the program: each runs on a stack of its own, leaves it where it would wait, and is taken up again from inside
 * the MPI's progress, so in any call in which the program waits or asks. */
#ifndef CAUSEWAY_TASK_H
#define CAUSEWAY_TASK_H

#include "plan.h"

/* Whether the MPI lets others take part in its progress at all ranks: Open MPI does, and MPICH since it has MPIX_Async_start. Asked of all
 * once, with choice_learn. */
void tasks_agree(void);
int tasks_possible(void);

/* A request of the program's is that of a message to this process itself, which is sent when the operation is over, so that every call on
 * requests knows it. Bytes that it has no room for tell of a failure. */
int ending_make(int *tag, MPI_Request *request, int is_persistent);
/* `request`: one for which nothing will be sent, or NULL. */
void ending_free(int tag, MPI_Request *request);

/* Begins an operation of a plan that is kept, whose messages have tags from `tags` on. It sends the ending with `tag` when it is over, and frees that tag unless it
 * is persistent. */
int task_start(struct plan *plan, int tags, int tag);

/* Whether the caller is such an operation. */
int task_runs(void);
/* Waits for a request as whoever calls may. */
int task_wait(MPI_Request *request);

/* Wait until the operations on these levels, or all, are over. */
void tasks_finish(const struct levels *on);
void tasks_finish_all(void);

/* In MPI_Finalize, and when nothing may need what they made any more. */
void tasks_end(void);

#endif
