/* Blocking and non-blocking receives. */
#define _GNU_SOURCE
#include "common/binding/signatures.h"
#include "world/calls/check.h"
#include "world/handles/requests.h"
#include "world/native/progress.h"
#include "world/native/transfer.h"

EXPORT int MPI_Recv(PARAMETERS(Receive), MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if (on) {
        int error = check_receive(on, count, type, source, tag);
        return error == MPI_SUCCESS ? transfer_receive_now(on, buffer, count, type, source, tag, status)
                                    : error;
    }
    if (progress_may_block())
        return PASS(Recv, buffer, count, type, source, tag, comm, status);
    MPI_Request request;
    int error = real.Irecv(buffer, count, type, source, tag, comm, &request);
    return error == MPI_SUCCESS ? progress_wait(&request, status) : error;
}
BOTH(Recv);

EXPORT int MPI_Irecv(PARAMETERS(Receive), MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Irecv, buffer, count, type, source, tag, comm, request);
    NEEDS(on, request);
    int error = check_receive(on, count, type, source, tag);
    if (error != MPI_SUCCESS)
        return error;
    if (!transfer_is_native(on, source, tag))
        return comm_error(on, far_irecv(on, buffer, count, type, source, tag, request));
    if (source == MPI_PROC_NULL)
        return real.Irecv(buffer, count, type, source, tag, comm, request);
    error = real.Irecv(buffer, count, type, on->native[source], tag, comm, request);
    return error == MPI_SUCCESS ? request_add_native(*request, on) : error;
}
BOTH(Irecv);
