#define _GNU_SOURCE
#include "world/native/look.h"

#include "common/binding/export.h"
#include "world/native/ending.h"
#include "world/native/far.h"
#include "world/native/here.h"
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/streams/streams.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum {
    /* A look at sockets costs 250 ns. Messages of the site would wait for it each time. */
    NS_BETWEEN_SOCKETS = 2000,
    /* So many looks without anything, a few us, and others get the processor. */
    FRUITLESS_LOOKS = 40,
    /* So many, some 20 ms and thus longer than most answers take, and who waits for another site sleeps.
     * Being woken takes 40 us. */
    FRUITLESS_YIELDS = 20000,
    SLEEP_MS = 1,
};

int look_has_hook;

static int is_looking;

/* What the library above has to do in looks, and how many there wait for it. */
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

int look_is_needed(void)
{
    return ours.receives > 0 || task_count > 0 || engine_sends_wait(ours.engine) || streams_unwritten() ||
           work_is_needed();
}

static int look_at_sockets(int wait_ms)
{
    static int64_t last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    if (ns - last < NS_BETWEEN_SOCKETS && wait_ms == 0)
        return 0;
    last = ns;
    int did = streams_look(wait_ms);
    ending_check();
    return did;
}

static int look_once(int wait_ms)
{
    if (is_looking)
        return 0;
    is_looking = 1;
    int did = look_at_sockets(wait_ms) + here_look();
    struct operation *done;
    while ((done = engine_take_done(ours.engine))) {
        far_complete((struct far *)done);
        did++;
    }
    did += tasks_run();
    if (work_is_needed())
        did += work_above();
    is_looking = 0;
    return did;
}

void look(void) { look_once(0); }

#if defined(OPEN_MPI)

static int hook(void) { return ours.is_on && look_is_needed() ? look_once(0) : 0; }

static int (*unregister)(int (*)(void));

void look_begin(void)
{
    static const char *const libraries[] = {"libopen-pal.so.40", "libopen-pal.so.80"};
    int (*enter)(int (*)(void)) = NULL;
    for (size_t i = 0; !enter && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        enter = (int (*)(int (*)(void)))dlsym(library, "opal_progress_register");
        unregister = (int (*)(int (*)(void)))dlsym(library, "opal_progress_unregister");
        dlclose(library);
    }
    look_has_hook = enter && unregister && enter(hook) == 0;
}

void look_end(void)
{
    if (look_has_hook)
        unregister(hook);
}

#else

void look_begin(void) {}
void look_end(void) {}

#endif

/* The MPI goes on whenever it is asked for a message that is not there. MPICH 4 does not where it is asked on
 * a communicator of one process: it keeps what a process sends to itself in a place of its own. */
static void let_mpi_go_on(void)
{
    int flag;
    real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ours.site, &flag, MPI_STATUS_IGNORE);
}

void look_pause(struct pace *pace)
{
    /* Asking for messages of the site lets the MPI go on, too. */
    if (!here_asks())
        let_mpi_go_on();
    int sleeps = pace->is_far && pace->fruitless > FRUITLESS_YIELDS && !work_is_needed();
    if (look_once(sleeps ? SLEEP_MS : 0))
        pace->fruitless = 0;
    else if (++pace->fruitless > FRUITLESS_LOOKS && !sleeps)
        sched_yield();
}

void look_until(int (*is_over)(void *of), void *of, int is_far)
{
    struct pace pace = {.is_far = is_far};
    while (!is_over(of)) {
        if (task_is_running())
            task_await(is_over, of);
        else
            look_pause(&pace);
    }
}

struct tested {
    MPI_Request *request;
    MPI_Status *status;
    int flag, error;
};

/* Asked again, it says the same. */
static int is_complete(void *of)
{
    struct tested *tested = of;
    if (!tested->flag && tested->error == MPI_SUCCESS)
        tested->error = real.Test(tested->request, &tested->flag, tested->status);
    return tested->flag || tested->error != MPI_SUCCESS;
}

int look_wait(MPI_Request *request, MPI_Status *status)
{
    struct tested tested = {request, status, 0, MPI_SUCCESS};
    look_until(is_complete, &tested, 0);
    return tested.error;
}
