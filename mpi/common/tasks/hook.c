#define _GNU_SOURCE
#include "common/tasks/hook.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static int (*work)(void);
static const atomic_int *waits;
static int is_hooked;
/* Guards is_hooked. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_tested(MPI_Request *request, MPI_Status *received, int *status)
{
    int done = 0;
    *status = real.Test(request, &done, received);
    return done || *status != MPI_SUCCESS;
}

#if defined(OPEN_MPI)

static int (*hook_register)(int (*)(void));
static int (*hook_unregister)(int (*)(void));

static int hook(void) { return !waits || atomic_load_explicit(waits, memory_order_relaxed) ? work() : 0; }

int hook_find(void)
{
    static const char *const libraries[] = {"libopen-pal.so.40", "libopen-pal.so.80"};
    for (size_t i = 0; !hook_register && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        hook_register = (int (*)(int (*)(void)))dlsym(library, "opal_progress_register");
        hook_unregister = (int (*)(int (*)(void)))dlsym(library, "opal_progress_unregister");
        dlclose(library);
    }
    return hook_register && hook_unregister;
}

int hook_completes(MPI_Request *request, MPI_Status *received, int *status)
{
    return is_tested(request, received, status);
}

/* The hook stays until the end: if there is nothing to do, it only reads one number. */
int hook_join(int (*its_work)(void), const atomic_int *its_waits)
{
    pthread_mutex_lock(&lock);
    if (!is_hooked) {
        work = its_work;
        waits = its_waits;
    }
    int status = is_hooked ? 0 : hook_register(hook);
    is_hooked = status == 0;
    pthread_mutex_unlock(&lock);
    return status == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

void hook_leave(void)
{
    if (is_hooked)
        hook_unregister(hook);
    is_hooked = 0;
}

#else

/* As in MPICH's mpi.h; older headers do not define them. */
typedef void *async_thing;
typedef int async_stream;
#define STREAM_NULL ((async_stream)0x3c000000)
enum { ASYNC_NOPROGRESS, ASYNC_DONE };

static int (*async_start)(int (*)(async_thing), void *, async_stream);
static int (*request_is_complete)(MPI_Request);

static int hook(async_thing thing)
{
    (void)thing;
    pthread_mutex_lock(&lock);
    int is_idle = waits && atomic_load(waits) == 0;
    if (is_idle)
        is_hooked = 0;
    pthread_mutex_unlock(&lock);
    if (is_idle)
        return ASYNC_DONE;
    work();
    return ASYNC_NOPROGRESS;
}

int hook_find(void)
{
#if !defined(CAUSEWAY_STANDARD_ABI)
    async_start = (int (*)(int (*)(async_thing), void *, async_stream))mpi_calls_find("Async_start");
    request_is_complete = (int (*)(MPI_Request))mpi_calls_find("Request_is_complete");
#endif
    return async_start && request_is_complete;
}

/* Inside MPICH's own progress engine, MPI_Test must not be called on an incomplete request: it would start
 * progress again. */
int hook_completes(MPI_Request *request, MPI_Status *received, int *status)
{
    *status = MPI_SUCCESS;
    return request_is_complete(*request) && is_tested(request, received, status);
}

int hook_join(int (*its_work)(void), const atomic_int *its_waits)
{
    pthread_mutex_lock(&lock);
    int first = !is_hooked;
    if (first) {
        work = its_work;
        waits = its_waits;
    }
    is_hooked = 1;
    pthread_mutex_unlock(&lock);
    int status = first ? async_start(hook, NULL, STREAM_NULL) : MPI_SUCCESS;
    if (status != MPI_SUCCESS)
        is_hooked = 0;
    return status;
}

void hook_leave(void) {}

#endif
