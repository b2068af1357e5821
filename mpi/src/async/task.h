/* Operations that go on beside the program: each runs on a stack of its own, leaves it where it would wait,
 * and is taken up again from inside the MPI's progress, so in any call in which the program waits or asks. */
#ifndef CAUSEWAY_TASK_H
#define CAUSEWAY_TASK_H

#include "async/plan.h"

/* Whether the MPI lets others take part in its progress at all ranks. Asked of all once, after
 * agreement_reach. */
void tasks_agree(void);
int tasks_possible(void);

/* Begins an operation of a plan that outlives its call. It sends the completion when it is over, and frees it
 * unless it is persistent. */
int task_start(struct plan *plan, int completion);

/* Wait until the operations on this hierarchy, or all, are over. */
void tasks_finish(const struct hierarchy *on);
void tasks_finish_all(void);

/* In MPI_Finalize, and when nothing may need what they made any more. */
void tasks_end(void);

#endif
