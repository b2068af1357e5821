/* Keeps MPICH over UCX from hanging in MPI_Finalize. Part of the preload library for jobs of MPICH.
 *
 * In MPI_Finalize each rank closes its UCX endpoints. It waits for an answer, which the peer sends only from
 * ucp_worker_progress(). Then the rank waits in a PMI barrier, a blocking read() without progress. A rank
 * that gets there before a peer's request has arrived leaves that peer waiting for ever. On a LAN the request
 * usually arrives first. Across a WAN about one in three runs of 4 ranks hung, with or without Causeway
 * (MPICH 4.0.2, UCX 1.13: src/mpid/ch4/netmod/ucx/ucx_init.c, uct/tcp/tcp_ep.c; uct_tcp_ep_flush sends a put
 * of no bytes and waits for its acknowledgement).
 *
 * So a rank keeps answering while it waits for its process manager inside MPI_Finalize. Nothing else is
 * changed. */
#define _GNU_SOURCE
#include "next.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* As in ucp/api/ucp.h, which need not be installed: two pointers and a status. */
typedef void *ucp_worker_h;
typedef int (*worker_create_fn)(void *context, const void *params, ucp_worker_h *worker);
typedef void (*worker_destroy_fn)(ucp_worker_h worker);
typedef unsigned (*worker_progress_fn)(ucp_worker_h worker);

/* MPICH has one worker for each virtual interface, by default one. A peer's request arrives at the worker
 * that the peer knows. */
#define MAX_WORKERS 64
static _Atomic(ucp_worker_h) workers[MAX_WORKERS];
static atomic_int finalizing;
static worker_progress_fn progress;

/* What a hook returns if it does not find the function that it overrides. The headers of MPI and UCX need not
 * be installed: 16 is MPI_ERR_INTERN of MPICH and MPI_ERR_OTHER of the standard ABI, -22 is
 * UCS_ERR_UNSUPPORTED. */
#define NO_MPI 16
#define NO_UCX (-22)

int ucp_worker_create(void *context, const void *params, ucp_worker_h *worker)
{
    worker_create_fn real = (worker_create_fn)next("ucp_worker_create");
    progress = (worker_progress_fn)next("ucp_worker_progress");
    if (!real)
        return NO_UCX;
    int status = real(context, params, worker);
    for (int i = 0; status == 0 && i < MAX_WORKERS; i++) {
        ucp_worker_h none = NULL;
        if (atomic_compare_exchange_strong(&workers[i], &none, *worker))
            break;
    }
    return status;
}

void ucp_worker_destroy(ucp_worker_h worker)
{
    for (int i = 0; i < MAX_WORKERS; i++) {
        ucp_worker_h this = worker;
        atomic_compare_exchange_strong(&workers[i], &this, NULL);
    }
    worker_destroy_fn real = (worker_destroy_fn)next("ucp_worker_destroy");
    if (real)
        real(worker);
}

static int finalize(const char *name)
{
    int (*real)(void) = (int (*)(void))next(name);
    if (!real)
        return NO_MPI;
    atomic_store(&finalizing, 1);
    int status = real();
    atomic_store(&finalizing, 0);
    return status;
}

/* C programs call the first; Fortran programs call either, depending on the flavour. */
int MPI_Finalize(void) { return finalize("MPI_Finalize"); }
int PMPI_Finalize(void) { return finalize("PMPI_Finalize"); }

static int is_process_manager(int fd)
{
    const char *number = getenv("PMI_FD");
    return number && atoi(number) == fd;
}

ssize_t read(int fd, void *buffer, size_t length)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real)
        real = (ssize_t (*)(int, void *, size_t))next("read");
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    if (atomic_load_explicit(&finalizing, memory_order_relaxed) && progress && is_process_manager(fd)) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int kept = errno;
        int polled;
        /* One round per millisecond is enough: the peer needs an answer, not a fast one. A signal, such as a
         * profiler's timer, must not end the loop, because the read blocks without progress. */
        while ((polled = poll(&ready, 1, 1)) == 0 || (polled < 0 && errno == EINTR)) {
            for (int i = 0; i < MAX_WORKERS; i++) {
                ucp_worker_h worker = atomic_load(&workers[i]);
                if (worker)
                    progress(worker);
            }
        }
        errno = kept;
    }
    return real(fd, buffer, length);
}
