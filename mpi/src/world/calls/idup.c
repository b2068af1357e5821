/* Duplicates that are made beside the program: the native parts by the MPI, the record by a task. */
#define _GNU_SOURCE
#include "world/below/local.h"
#include "world/below/task.h"
#include "world/calls/inter.h"
#include "world/calls/making.h"
#include "world/plain/plain.h"

#include <stdlib.h>

struct duplicate {
    struct comm *on;
    /* Where the program's handle comes, and what belongs to it. */
    MPI_Comm *made, hidden, inside;
    MPI_Request made_comes, hidden_comes, inside_comes;
};

/* The name of the duplicate is what rank 0 says. */
static int record(struct duplicate *duplicate, uint64_t number)
{
    struct comm *on = duplicate->on;
    struct comm *made = comm_make(*duplicate->made, duplicate->hidden, number, on->size, on->numbers);
    if (!made)
        return MPI_ERR_NO_MEM;
    made->topology = on->topology;
    topology_hold(on->topology);
    return MPI_SUCCESS;
}

static int wait_for_native(struct duplicate *duplicate)
{
    int status = look_wait(&duplicate->made_comes, MPI_STATUS_IGNORE);
    int hidden = look_wait(&duplicate->hidden_comes, MPI_STATUS_IGNORE);
    int inside = look_wait(&duplicate->inside_comes, MPI_STATUS_IGNORE);
    TRY(status, hidden);
    TRY(status, inside);
    TRY(status, real.Comm_set_errhandler(duplicate->hidden, handle.errors_return));
    if (duplicate->on->local)
        TRY(status, real.Comm_set_errhandler(duplicate->inside, handle.errors_return));
    return status;
}

static int run(void *of)
{
    struct duplicate *duplicate = of;
    uint64_t number = comm_next_number();
    int status = plain_bcast(duplicate->on->hidden, &number, (int)sizeof number, handle.byte, 0);
    int native = wait_for_native(duplicate);
    TRY(status, native);
    return TRY(status, record(duplicate, number));
}

static int run_inter(void *of)
{
    struct duplicate *duplicate = of;
    struct comm *on = duplicate->on;
    struct word mine = {inter_take_numbers(), 0}, theirs;
    int status = inter_agree(on, &mine, &theirs);
    int native = wait_for_native(duplicate);
    TRY(status, native);
    if (status != MPI_SUCCESS)
        return status;
    struct side local = inter_side(on->size, on->numbers, &mine);
    struct side remote = inter_side(on->peers, on->peer_numbers, &theirs);
    return inter_record(*duplicate->made, duplicate->hidden, duplicate->inside, &local, &remote);
}

/* All native parts begin in the call, so that all ranks begin them in the same order. */
static int begin(struct comm *on, int (*dup)(MPI_Comm, MPI_Comm *, MPI_Request *), int status,
                 struct duplicate *duplicate, MPI_Request *request)
{
    struct work work = {on->local ? run_inter : run, free, duplicate};
    TRY(status, dup(on->hidden->handle, &duplicate->hidden, &duplicate->hidden_comes));
    if (on->local)
        TRY(status, dup(on->local->handle, &duplicate->inside, &duplicate->inside_comes));
    TRY(status, task_start(on, &work, request));
    if (status != MPI_SUCCESS)
        free(duplicate);
    return comm_error(on, status);
}

typedef int idup(MPI_Comm, MPI_Comm *, MPI_Request *);
typedef int idup_with_info(MPI_Comm, MPI_Info, MPI_Comm *, MPI_Request *);

static struct duplicate *duplicate_of(struct comm *on, MPI_Comm *made)
{
    struct duplicate *duplicate = malloc(sizeof *duplicate);
    if (duplicate)
        *duplicate = (struct duplicate){.on = on, .made = made, .inside_comes = handle.request_null};
    return duplicate;
}

EXPORT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request)
{
    static idup *own;
    struct comm *on = comm_find(comm);
    if (!own)
        own = (idup *)mpi_calls_find("Comm_idup");
    if (!own || !on)
        return own ? own(comm, made, request) : NO_MPI;
    struct duplicate *duplicate = duplicate_of(on, made);
    if (!duplicate)
        return comm_error(on, MPI_ERR_NO_MEM);
    return begin(on, own, own(comm, made, &duplicate->made_comes), duplicate, request);
}
BOTH(Comm_idup);

/* Hints may be ignored: an MPI that cannot take them makes a plain duplicate. */
static int native_idup(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
    static idup_with_info *own;
    static idup *plain;
    if (!own && !plain) {
        own = (idup_with_info *)mpi_calls_find("Comm_idup_with_info");
        plain = (idup *)mpi_calls_find("Comm_idup");
    }
    if (own)
        return own(comm, info, made, request);
    return plain ? plain(comm, made, request) : NO_MPI;
}

EXPORT int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    idup *plain = (idup *)mpi_calls_find("Comm_idup");
    if (!on || !plain)
        return native_idup(comm, info, made, request);
    struct duplicate *duplicate = duplicate_of(on, made);
    if (!duplicate)
        return comm_error(on, MPI_ERR_NO_MEM);
    return begin(on, plain, native_idup(comm, info, made, &duplicate->made_comes), duplicate, request);
}
BOTH(Comm_idup_with_info);
