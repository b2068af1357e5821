#define _GNU_SOURCE
#include "world/native/progress.h"

#include "common/binding/export.h"
#include "common/tasks/hook.h"
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/native/ending.h"
#include "world/native/far.h"
#include "world/native/wildcard.h"
#include "world/streams/streams.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum {
    /* Polling the sockets costs 250 ns, for which messages within the site would wait each time. */
    NS_BETWEEN_SOCKETS = 2000,
    /* After this many calls that found nothing, a few us, other processes get the processor. */
    FRUITLESS_CALLS = 40,
    /* After this many, some 20 ms and thus longer than most answers take, a process that waits for another
     * site sleeps. Being woken takes 40 us. */
    FRUITLESS_YIELDS = 20000,
    SLEEP_MS = 1,
};

int progress_has_hook;

static int is_progressing;

/* The work of the library above, and how many of its operations wait for it. */
static int (*work_above)(void);
static const atomic_int *work_waits;

static int work_is_needed(void)
{
    return work_waits && atomic_load_explicit(work_waits, memory_order_relaxed) > 0;
}

EXPORT int causeway_world_work(int (*work)(void), const atomic_int *waits)
{
    if (!ours.is_on)
        return 0;
    work_above = work;
    work_waits = waits;
    return 1;
}

int progress_is_needed(void)
{
    return ours.receives > 0 || tasks_are_under_way() || engine_sends_wait(ours.engine) ||
           streams_unwritten() || work_is_needed();
}

static int progress_sockets(int wait_ms)
{
    static int64_t last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    if (ns - last < NS_BETWEEN_SOCKETS && wait_ms == 0)
        return 0;
    last = ns;
    int did = streams_progress(wait_ms);
    ending_check();
    return did;
}

static int progress_once(int wait_ms)
{
    if (is_progressing)
        return 0;
    is_progressing = 1;
    int did = progress_sockets(wait_ms) + wildcard_look();
    struct operation *done;
    while ((done = engine_take_done(ours.engine))) {
        far_complete((struct far *)done);
        did++;
    }
    did += tasks_run();
    if (work_is_needed())
        did += work_above();
    is_progressing = 0;
    return did;
}

void progress(void) { progress_once(0); }

#if defined(OPEN_MPI)

static int hook(void) { return ours.is_on && progress_is_needed() ? progress_once(0) : 0; }

void progress_begin(void) { progress_has_hook = hook_find() && hook_join(hook, NULL) == MPI_SUCCESS; }
void progress_end(void) { hook_leave(); }

#else

void progress_begin(void) {}
void progress_end(void) {}

#endif

/* The MPI makes progress whenever it is asked for a message that is not there. MPICH 4 does not if it is
 * asked on a communicator of one process: it keeps messages of a process to itself in a place of their
 * own. */
static void let_mpi_go_on(void)
{
    int flag;
    real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ours.site, &flag, MPI_STATUS_IGNORE);
}

void progress_pause(struct pace *pace)
{
    /* Asking for messages of the site lets the MPI make progress, too. */
    if (!wildcard_asks())
        let_mpi_go_on();
    int sleeps = pace->is_far && pace->fruitless > FRUITLESS_YIELDS && !work_is_needed();
    if (progress_once(sleeps ? SLEEP_MS : 0))
        pace->fruitless = 0;
    else if (++pace->fruitless > FRUITLESS_CALLS && !sleeps)
        sched_yield();
}

void progress_until(int (*is_over)(void *of), void *of, int is_far)
{
    struct pace pace = {.is_far = is_far};
    while (!is_over(of)) {
        if (task_is_running())
            task_await(is_over, of);
        else
            progress_pause(&pace);
    }
}

struct tested {
    MPI_Request *request;
    MPI_Status *status;
    int flag, error;
};

/* Once it has returned true, it returns true again. */
static int is_complete(void *of)
{
    struct tested *tested = of;
    if (!tested->flag && tested->error == MPI_SUCCESS)
        tested->error = real.Test(tested->request, &tested->flag, tested->status);
    return tested->flag || tested->error != MPI_SUCCESS;
}

int progress_wait(MPI_Request *request, MPI_Status *status)
{
    struct tested tested = {request, status, 0, MPI_SUCCESS};
    progress_until(is_complete, &tested, 0);
    return tested.error;
}
