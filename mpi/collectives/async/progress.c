#include "collectives/async/progress.h"

#include "common/tasks/hook.h"
#include "common/tasks/tasks.h"

static int (*run)(void);
/* Where each site runs its own MPI, the library that joins them drives progress, whatever the MPI. */
static int is_in_world, has_hook;

void progress_find(int (*work)(void))
{
    int (*share)(int (*)(void), const atomic_int *) =
        (int (*)(int (*)(void), const atomic_int *))mpi_calls_of_world("causeway_world_work");
    run = work;
    is_in_world = share && share(run, &tasks_count);
    has_hook = hook_find();
}

int progress_is_there(void) { return is_in_world || has_hook; }

int progress_join(void) { return is_in_world ? MPI_SUCCESS : hook_join(run, &tasks_count); }

void progress_leave(void) { hook_leave(); }

int progress_completes(MPI_Request *request, MPI_Status *received, int *status)
{
    if (!is_in_world)
        return hook_completes(request, received, status);
    int done = 0;
    *status = real.Test(request, &done, received);
    return done || *status != MPI_SUCCESS;
}
