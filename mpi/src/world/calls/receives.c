/* Receives, blocking and not, and both at once. */
#define _GNU_SOURCE
#include "world/below/look.h"
#include "world/below/transfer.h"
#include "world/calls/check.h"
#include "world/handles/requests.h"

#include <stdlib.h>

EXPORT int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                    MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if (on) {
        int error = check_receive(on, count, type, from, tag);
        return error == MPI_SUCCESS ? transfer_receive_now(on, buffer, count, type, from, tag, status)
                                    : error;
    }
    if (look_may_block())
        return PASS(Recv, buffer, count, type, from, tag, comm, status);
    MPI_Request request;
    int error = real.Irecv(buffer, count, type, from, tag, comm, &request);
    return error == MPI_SUCCESS ? look_wait(&request, status) : error;
}
BOTH(Recv);

EXPORT int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Irecv, buffer, count, type, from, tag, comm, request);
    int error = check_receive(on, count, type, from, tag);
    if (error != MPI_SUCCESS)
        return error;
    if (!transfer_is_native(on, from, tag))
        return comm_error(on, far_irecv(on, buffer, count, type, from, tag, request));
    if (from == MPI_PROC_NULL)
        return real.Irecv(buffer, count, type, from, tag, comm, request);
    error = real.Irecv(buffer, count, type, on->native[from], tag, comm, request);
    return error == MPI_SUCCESS ? request_add_native(*request, on) : error;
}
BOTH(Irecv);

static int sendrecv(struct comm *on, const void *out, int out_count, MPI_Datatype out_type, int to,
                    int out_tag, void *in, int in_count, MPI_Datatype in_type, int from, int in_tag,
                    MPI_Status *status)
{
    struct transfer sending = {0}, receiving = {0};
    int error = transfer_receive(&receiving, on, in, in_count, in_type, from, in_tag);
    TRY(error, transfer_send(&sending, on, out, out_count, out_type, to, out_tag));
    int sent = transfer_wait(&sending, MPI_STATUS_IGNORE), received = transfer_wait(&receiving, status);
    if (error != MPI_SUCCESS)
        return error;
    return received != MPI_SUCCESS ? received : sent;
}

EXPORT int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                        int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                        MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if (on) {
        int error = check_send(on, out_count, out_type, to, out_tag);
        TRY(error, check_receive(on, in_count, in_type, from, in_tag));
        return error != MPI_SUCCESS ? error
                                    : sendrecv(on, out, out_count, out_type, to, out_tag, in, in_count,
                                               in_type, from, in_tag, status);
    }
    if (look_may_block())
        return PASS(Sendrecv, out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag,
                    comm, status);
    MPI_Request sending = handle.request_null, receiving = handle.request_null;
    int error = real.Irecv(in, in_count, in_type, from, in_tag, comm, &receiving);
    TRY(error, real.Isend(out, out_count, out_type, to, out_tag, comm, &sending));
    TRY(error, look_wait(&sending, MPI_STATUS_IGNORE));
    TRY(error, look_wait(&receiving, status));
    return error;
}
BOTH(Sendrecv);

/* The data that goes is packed first, so that what comes may take its place. */
static int replace(struct comm *on, void *buffer, int count, MPI_Datatype type, int to, int out_tag, int from,
                   int in_tag, MPI_Status *status)
{
    struct shape shape;
    struct transfer sending = {0};
    int error = data_shape(type, &shape);
    if (error == MPI_SUCCESS && count * shape.bytes > INT32_MAX)
        error = MPI_ERR_COUNT;
    char *packed = error == MPI_SUCCESS ? malloc((size_t)(count * shape.bytes) + 1) : NULL;
    if (error == MPI_SUCCESS && !packed)
        error = MPI_ERR_NO_MEM;
    TRY(error, data_pack(buffer, count, type, &shape, packed));
    if (error != MPI_SUCCESS)
        return comm_error(on, error);
    error = transfer_send(&sending, on, packed, (int)(count * shape.bytes), handle.byte, to, out_tag);
    TRY(error, transfer_receive_now(on, buffer, count, type, from, in_tag, status));
    int sent = transfer_wait(&sending, MPI_STATUS_IGNORE);
    free(packed);
    return error != MPI_SUCCESS ? error : sent;
}

EXPORT int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int out_tag, int from,
                                int in_tag, MPI_Comm comm, MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if (!on)
        OTHER("Sendrecv_replace", (void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status *),
              buffer, count, type, to, out_tag, from, in_tag, comm, status);
    int error = check_send(on, count, type, to, out_tag);
    TRY(error, check_receive(on, count, type, from, in_tag));
    return error != MPI_SUCCESS ? error : replace(on, buffer, count, type, to, out_tag, from, in_tag, status);
}
BOTH(Sendrecv_replace);
