/* Duplicates that are made in the background: the MPI makes the native parts, one after the other, and a task
 * makes the record. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/calls/inter.h"
#include "world/calls/making.h"
#include "world/native/native.h"
#include "world/native/task.h"

#include <stdlib.h>

typedef int idup(MPI_Comm, MPI_Comm *, MPI_Request *);
typedef int idup_with_info(MPI_Comm, MPI_Info, MPI_Comm *, MPI_Request *);

/* Calls the form that the MPI has: hints may be ignored if it cannot take them. */
static int native_idup(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
    static idup *plain;
    static idup_with_info *with_info;
    if (!plain) {
        plain = (idup *)mpi_calls_find("Comm_idup");
        with_info = (idup_with_info *)mpi_calls_find("Comm_idup_with_info");
    }
    if (info != handle.info_null && with_info)
        return with_info(comm, info, made, request);
    return plain ? plain(comm, made, request) : NO_MPI;
}

struct duplicate {
    struct comm *on;
    /* A copy, or MPI_INFO_NULL. */
    MPI_Info info;
    /* Where to store the program's handle. */
    MPI_Comm *made;
    unsigned number;
};

static void info_free(MPI_Info *info)
{
    static int (*own)(MPI_Info *);
    if (!own)
        own = (int (*)(MPI_Info *))mpi_calls_find("Info_free");
    if (*info != handle.info_null && own)
        own(info);
}

static MPI_Info info_copy(MPI_Info info)
{
    static int (*own)(MPI_Info, MPI_Info *);
    MPI_Info copy = handle.info_null;
    if (!own)
        own = (int (*)(MPI_Info, MPI_Info *))mpi_calls_find("Info_dup");
    if (info != handle.info_null && own && own(info, &copy) != MPI_SUCCESS)
        copy = handle.info_null;
    return copy;
}

static void end(void *of)
{
    struct duplicate *duplicate = of;
    info_free(&duplicate->info);
    free(duplicate);
}

/* After the native part has been made, all ranks exchange their results, and make the record. */
static int record(struct comm *on, int status, MPI_Comm *made)
{
    struct says *all = malloc((size_t)on->size * sizeof *all);
    if (!all)
        return MPI_ERR_NO_MEM;
    status = making_exchange(on, 0, 0, status, all);
    TRY(status, making_record(*made, all, NULL, on->size, on->numbers));
    making_end(status, all[on->rank].slot, made);
    free(all);
    if (status != MPI_SUCCESS)
        return status;
    comm_find(*made)->topology = on->topology;
    topology_hold(on->topology);
    return MPI_SUCCESS;
}

static int is_next(void *of)
{
    const struct duplicate *duplicate = of;
    return duplicate->on->duplicated == duplicate->number;
}

/* With Open MPI, the native parts of a communicator's duplicates are made one after the other: if it makes
 * progress between two calls of MPI_Comm_idup, it interleaves their steps, differently at each rank. An MPI
 * without a hook does not, and must have begun all duplicates that the program has asked for when it
 * waits. */
static int run(void *of)
{
    struct duplicate *duplicate = of;
    MPI_Request comes;
    if (progress_has_hook)
        progress_until(is_next, duplicate, 0);
    int status = native_idup(duplicate->on->handle, duplicate->info, duplicate->made, &comes);
    TRY(status, progress_wait(&comes, MPI_STATUS_IGNORE));
    duplicate->on->duplicated++;
    if (status != MPI_SUCCESS)
        *duplicate->made = handle.comm_null;
    if (!duplicate->on->local)
        return record(duplicate->on, status, duplicate->made);
    return TRY(status, inter_duplicate(duplicate->on, *duplicate->made));
}

static int begin(struct comm *on, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
    NEEDS(on, made && request);
    struct duplicate *duplicate = malloc(sizeof *duplicate);
    if (!duplicate)
        return comm_error(on, MPI_ERR_NO_MEM);
    *duplicate =
        (struct duplicate){.on = on, .info = info_copy(info), .made = made, .number = on->duplicates++};
    struct work work = {run, end, duplicate};
    int status = task_start(on, &work, request);
    if (status != MPI_SUCCESS) {
        on->duplicates--;
        end(duplicate);
    }
    return comm_error(on, status);
}

EXPORT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    mpi_calls_load();
    return on ? begin(on, handle.info_null, made, request)
              : native_idup(comm, handle.info_null, made, request);
}
BOTH(Comm_idup);

EXPORT int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    mpi_calls_load();
    return on ? begin(on, info, made, request) : native_idup(comm, info, made, request);
}
BOTH(Comm_idup_with_info);
