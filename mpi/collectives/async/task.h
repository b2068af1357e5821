/* Operations that go on beside the program, as tasks (common/tasks): each does what its plan says, and is
 * resumed inside the MPI's progress. */
#ifndef CAUSEWAY_TASK_H
#define CAUSEWAY_TASK_H

#include "collectives/async/plan.h"

/* Finds out whether the MPI lets others take part in its progress at all ranks. It is collective, and is
 * called once, after agreement_reach. */
void tasks_agree(void);
/* What tasks_agree found. */
int tasks_possible(void);

/* Starts a task for a plan that outlives its call. The task sends the completion when it is over, and frees
 * it unless the plan is persistent. */
int task_start(struct plan *plan, int completion);

/* Wait until the tasks on this hierarchy, or all, are over. */
void tasks_finish(const struct hierarchy *on);
void tasks_finish_all(void);

/* Leaves the MPI's progress and frees the stacks: in MPI_Finalize, when no task is left. */
void tasks_end(void);

#endif
