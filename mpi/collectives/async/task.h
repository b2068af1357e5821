/* Operations that run in the background, as tasks (common/tasks): each runs its plan, and is resumed inside
 * the MPI's progress engine. */
#ifndef CAUSEWAY_TASK_H
#define CAUSEWAY_TASK_H

#include "collectives/async/plan.h"

/* Finds out whether this rank's MPI lets others take part in its progress engine. Called once. */
int tasks_find(void);
/* Records whether every rank's MPI does, and installs the function with which tasks wait. */
void tasks_allow(int all_have_hooks);
/* Asks all ranks whether theirs does. Collective; used where the ranks have not exchanged it otherwise. */
int tasks_ask_all(void);
/* The value that tasks_allow recorded. */
int tasks_possible(void);

/* Starts a task for a plan that outlives its call. When the task ends, it sends the completion, and frees it
 * unless the plan is persistent. */
int task_start(struct plan *plan, int completion);

/* Wait until the tasks on this hierarchy, or all tasks, have ended. */
void tasks_finish(const struct hierarchy *on);
void tasks_finish_all(void);

/* Leaves the MPI's progress engine and frees the stacks; called in MPI_Finalize when no task is left. */
void tasks_end(void);

#endif
