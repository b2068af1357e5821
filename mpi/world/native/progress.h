/* Progress: what moves messages between sites along while the program waits in an MPI call, or asks. Nothing
 * runs beside the program. */
#ifndef CAUSEWAY_WORLD_PROGRESS_H
#define CAUSEWAY_WORLD_PROGRESS_H

#include "world/handles/ours.h"
#include "world/native/task.h"

#include <stdatomic.h>

/* Finds the MPI's own progress hook, and takes part in it. */
void progress_begin(void);
void progress_end(void);

/* Looks once: sockets, the engine, messages of the site, completions. Does nothing inside itself. */
void progress(void);

/* For a library above this one, which finds it by name: has `work` called by progress() while `waits` is not
 * 0. Returns 0 where there is no world of several sites. Inside `work` calls of this library make no
 * progress. */
int causeway_world_work(int (*work)(void), const atomic_int *waits);

/* Whether far receives or sends are not done: whoever waits then makes progress. */
int progress_is_needed(void);

/* Whether the MPI calls progress() for us while it waits. It depends on the MPI alone: all ranks of a site
 * agree. */
extern int progress_has_hook;
/* Whether a native call may wait by itself now. */
static inline int progress_may_block(void)
{
    return !ours.is_on || (!task_is_running() && (progress_has_hook || !progress_is_needed()));
}

/* For calls that wait for nothing. */
static inline void progress_if_needed(void)
{
    if (!progress_may_block())
        progress();
}

/* A loop that waits. Zeroed at first; progress_pause makes progress, lets the MPI go on, and gives way to
 * others when nothing has come for long. */
struct pace {
    unsigned fruitless;
    /* Only another site can end it: after some time the process sleeps until a socket has something, a
     * millisecond at most, so that the MPI goes on. */
    int is_far;
};
void progress_pause(struct pace *pace);

/* Waits until `is_over` says so: in a loop of progress_pause, or as a task. */
void progress_until(int (*is_over)(void *of), void *of, int is_far);

/* Waits for a native request; others go on meanwhile. */
int progress_wait(MPI_Request *request, MPI_Status *status);

#endif
