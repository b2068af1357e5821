/* Blocking and non-blocking sends. */
#define _GNU_SOURCE
#include "common/binding/signatures.h"
#include "world/calls/check.h"
#include "world/native/far_wait.h"
#include "world/native/progress.h"
#include "world/native/transfer.h"

/* Does a blocking send by its non-blocking form, so that other operations continue while it waits. */
#define WAITING(iname, ...)                                                               \
    do {                                                                                  \
        MPI_Request request;                                                              \
        int begun = real.iname(__VA_ARGS__, &request);                                    \
        return begun == MPI_SUCCESS ? progress_wait(&request, MPI_STATUS_IGNORE) : begun; \
    } while (0)

EXPORT int MPI_Send(PARAMETERS(Send))
{
    struct comm *on = comm_find(comm);
    if (on) {
        int status = check_send(on, count, type, to, tag);
        return status == MPI_SUCCESS ? transfer_send_now(on, buffer, count, type, to, tag) : status;
    }
    if (progress_may_block())
        return PASS(Send, buffer, count, type, to, tag, comm);
    WAITING(Isend, buffer, count, type, to, tag, comm);
}
BOTH(Send);

/* The native rank of a rank of a communicator that spans sites. */
static int native(const struct comm *on, int rank)
{
    return rank == MPI_PROC_NULL ? MPI_PROC_NULL : on->native[rank];
}

static int goes_far(const struct comm *on, int to) { return to != MPI_PROC_NULL && on->native[to] == FAR; }

EXPORT int MPI_Isend(PARAMETERS(Send), MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Isend, buffer, count, type, to, tag, comm, request);
    NEEDS(on, request);
    int status = check_send(on, count, type, to, tag);
    if (status != MPI_SUCCESS)
        return status;
    if (!goes_far(on, to))
        return real.Isend(buffer, count, type, native(on, to), tag, comm, request);
    return comm_error(on, far_isend(on, buffer, count, type, to, tag, STANDARD, request));
}
BOTH(Isend);

EXPORT int MPI_Issend(PARAMETERS(Send), MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Issend, buffer, count, type, to, tag, comm, request);
    NEEDS(on, request);
    int status = check_send(on, count, type, to, tag);
    if (status != MPI_SUCCESS)
        return status;
    if (!goes_far(on, to))
        return real.Issend(buffer, count, type, native(on, to), tag, comm, request);
    return comm_error(on, far_isend(on, buffer, count, type, to, tag, SYNCHRONOUS, request));
}
BOTH(Issend);

EXPORT int MPI_Ssend(PARAMETERS(Send))
{
    struct comm *on = comm_find(comm);
    if (!on && progress_may_block())
        return PASS(Ssend, buffer, count, type, to, tag, comm);
    int status = on ? check_send(on, count, type, to, tag) : MPI_SUCCESS;
    if (status != MPI_SUCCESS)
        return status;
    if (!on || !goes_far(on, to))
        WAITING(Issend, buffer, count, type, on ? native(on, to) : to, tag, comm);
    struct far far;
    status = comm_error(on, far_send(&far, on, buffer, count, type, to, tag, SYNCHRONOUS));
    if (status != MPI_SUCCESS)
        return status;
    far_wait(&far);
    return far_raise(&far);
}
BOTH(Ssend);

/* Between sites, it makes no difference that the receive is ready. */
EXPORT int MPI_Rsend(PARAMETERS(Send))
{
    if (!comm_find(comm) && progress_may_block())
        return PASS(Rsend, buffer, count, type, to, tag, comm);
    return MPI_Send(buffer, count, type, to, tag, comm);
}
BOTH(Rsend);

EXPORT int MPI_Irsend(PARAMETERS(Send), MPI_Request *request)
{
    if (!comm_find(comm))
        return PASS(Irsend, buffer, count, type, to, tag, comm, request);
    return MPI_Isend(buffer, count, type, to, tag, comm, request);
}
BOTH(Irsend);

EXPORT int MPI_Ibsend(PARAMETERS(Send), MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    int status = on ? check_send(on, count, type, to, tag) : MPI_SUCCESS;
    if (status != MPI_SUCCESS)
        return status;
    if (on)
        NEEDS(on, request);
    if (on && goes_far(on, to))
        return comm_error(on, far_isend(on, buffer, count, type, to, tag, BUFFERED, request));
    OTHER("Ibsend", (const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *), buffer, count, type,
          on ? native(on, to) : to, tag, comm, request);
}
BOTH(Ibsend);

EXPORT int MPI_Bsend(PARAMETERS(Send))
{
    struct comm *on = comm_find(comm);
    int status = on ? check_send(on, count, type, to, tag) : MPI_SUCCESS;
    if (status != MPI_SUCCESS)
        return status;
    if (on && goes_far(on, to)) {
        struct far far;
        return comm_error(on, far_send(&far, on, buffer, count, type, to, tag, BUFFERED));
    }
    OTHER("Bsend", (const void *, int, MPI_Datatype, int, int, MPI_Comm), buffer, count, type,
          on ? native(on, to) : to, tag, comm);
}
BOTH(Bsend);
