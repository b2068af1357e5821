/* Operations that go on beside the program, as tasks (common/tasks): each does what its plan says, and is
 * resumed inside the MPI's progress. */
#ifndef CAUSEWAY_TASK_H
#define CAUSEWAY_TASK_H

#include "collectives/async/plan.h"

/* Finds out whether the MPI lets others take part in its progress at this rank. Called once. */
int tasks_find(void);
/* Says whether it does at every rank, and what does the waiting then. */
void tasks_allow(int all_have_hooks);
/* Asks all ranks whether it does: collective, where nothing else was exchanged. */
int tasks_ask_all(void);
/* What tasks_allow was told. */
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
