/* Where counting begins and ends. */
#define _GNU_SOURCE
#include "messages/counting.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int is_on;
static struct about about;
static const char *directory;
static struct timespec start;
/* The process that counts. A forked child also runs the destructor, but has nothing to write. */
static pid_t self;

int counting_is_on(void) { return atomic_load_explicit(&is_on, memory_order_relaxed); }

static void begin(void)
{
    directory = getenv("CAUSEWAY_MESSAGES");
    if (!directory || !mpi_calls_fit() || !peers_begin())
        return;
    int (*parent)(MPI_Comm *) = (int (*)(MPI_Comm *))mpi_calls_find("Comm_get_parent");
    MPI_Comm from = handle.comm_null;
    if (parent)
        parent(&from);
    real.Comm_rank(handle.comm_world, &about.rank);
    real.Comm_size(handle.comm_world, &about.ranks);
    if (from != handle.comm_null) {
        if (!about.rank)
            fprintf(stderr,
                    "causeway bench messages: processes that the program has started are not counted\n");
        return;
    }
    self = getpid();
    clock_gettime(CLOCK_MONOTONIC, &start);
    atomic_store(&is_on, 1);
}

static void end(const char *how)
{
    if (!atomic_exchange(&is_on, 0) || getpid() != self)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    about.seconds = (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9;
    about.end = how;
    int failed = counts_write(directory, &about);
    if (failed == EEXIST)
        fprintf(stderr, "causeway bench messages: rank %d of a second program is not counted: one is\n",
                about.rank);
    else if (failed)
        fprintf(stderr, "causeway bench messages: rank %d: write %s/rank-%d.csv: %s\n", about.rank, directory,
                about.rank, strerror(failed));
}

/* A program that ends without MPI_Finalize is counted, too. */
__attribute__((destructor)) static void at_exit(void) { end("exit"); }

EXPORT int MPI_Init(int *argc, char ***argv)
{
    int status = PASS(Init, argc, argv);
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init);

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int status = PASS(Init_thread, argc, argv, required, provided);
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init_thread);

EXPORT int MPI_Finalize(void)
{
    end("MPI_Finalize");
    return PASS(Finalize);
}
BOTH(Finalize);

EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    end("MPI_Abort");
    return PASS(Abort, comm, code);
}
BOTH(Abort);
