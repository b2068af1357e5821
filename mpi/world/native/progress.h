/* Progress: moves messages between sites along while the program waits in an MPI call, or tests. There is no
 * thread beside the program's. */
#ifndef CAUSEWAY_WORLD_PROGRESS_H
#define CAUSEWAY_WORLD_PROGRESS_H

#include "world/handles/ours.h"
#include "world/native/task.h"

#include <stdatomic.h>

/* Find the MPI's own progress hook and take part in it, and leave it. */
void progress_begin(void);
void progress_end(void);

/* Polls once: sockets, the engine, messages of the site, completions. Does nothing if called from within
 * itself. */
void progress(void);

/* For a library above this one, which finds this function by name: makes progress() call `work` while *waits
 * is not 0. Returns 0 if there is no world of several sites. Inside `work`, calls of this library make no
 * progress. */
int causeway_world_work(int (*work)(void), const atomic_int *waits);

/* Whether far receives or sends are not done: calls that wait must then make progress. */
int progress_is_needed(void);

/* Whether the MPI calls progress() for us while it waits. It depends only on the MPI, so all ranks of a site
 * agree. */
extern int progress_has_hook;
/* Whether a native call may block now. */
static inline int progress_may_block(void)
{
    return !ours.is_on || (!task_is_running() && (progress_has_hook || !progress_is_needed()));
}

/* For calls that do not wait. */
static inline void progress_if_needed(void)
{
    if (!progress_may_block())
        progress();
}

/* The state of a loop that waits, zeroed at first. progress_pause makes progress, lets the MPI make progress,
 * and yields to other processes if nothing has happened for long. */
struct pace {
    unsigned fruitless;
    /* Whether only another site can end the wait: after some time the process then sleeps until a socket is
     * ready, for a millisecond at most, so that the MPI still makes progress. */
    int is_far;
};
void progress_pause(struct pace *pace);

/* Waits until `is_over` returns true: in a loop of progress_pause, or as a task. */
void progress_until(int (*is_over)(void *of), void *of, int is_far);

/* Waits for a native request; other operations continue meanwhile. */
int progress_wait(MPI_Request *request, MPI_Status *status);

#endif
