/* A send and a receive in one call that waits for both. */
#define _GNU_SOURCE
#include "world/calls/sendrecv.h"

#include "common/binding/signatures.h"
#include "world/calls/check.h"
#include "world/native/progress.h"
#include "world/native/rows.h"

#include <limits.h>
#include <stdlib.h>

int sendrecv_check(const struct sendrecv *both)
{
    int error = check_send(both->on, both->out_count, both->out_type, both->to, both->out_tag);
    return TRY(error, check_receive(both->on, both->in_count, both->in_type, both->from, both->in_tag));
}

int sendrecv_do(const struct sendrecv *both, MPI_Status *status)
{
    struct transfer sending = {0}, receiving = {0};
    int error = transfer_receive(&receiving, both->on, both->in, both->in_count, both->in_type, both->from,
                                 both->in_tag);
    TRY(error, transfer_send(&sending, both->on, both->out, both->out_count, both->out_type, both->to,
                             both->out_tag));
    int sent = transfer_wait(&sending, MPI_STATUS_IGNORE), received = transfer_wait(&receiving, status);
    if (error != MPI_SUCCESS)
        return error;
    return received != MPI_SUCCESS ? received : sent;
}

/* More bytes than an int can count are sent as one element of a derived type. */
static int send_packed(const struct sendrecv *both, const char *packed, int64_t bytes, MPI_Status *status)
{
    MPI_Datatype row = handle.datatype_null;
    struct sendrecv of_bytes = *both;
    int error = bytes > INT_MAX ? row_make(bytes, handle.byte, &row) : MPI_SUCCESS;
    of_bytes.out = packed;
    of_bytes.out_count = bytes > INT_MAX ? 1 : (int)bytes;
    of_bytes.out_type = bytes > INT_MAX ? row : handle.byte;
    if (error != MPI_SUCCESS)
        return comm_error(both->on, error);
    error = sendrecv_do(&of_bytes, status);
    if (row != handle.datatype_null)
        real.Type_free(&row);
    return error;
}

/* Packs the outgoing data first. */
int sendrecv_replace(const struct sendrecv *both, MPI_Status *status)
{
    struct shape shape;
    int error = data_shape(both->in_type, &shape);
    if (error != MPI_SUCCESS)
        return comm_error(both->on, error);
    int64_t bytes = both->in_count * shape.bytes;
    char *packed = malloc((size_t)bytes + 1);
    if (!packed)
        return comm_error(both->on, MPI_ERR_NO_MEM);
    error = data_pack(both->in, both->in_count, both->in_type, &shape, packed);
    error = error == MPI_SUCCESS ? send_packed(both, packed, bytes, status) : comm_error(both->on, error);
    free(packed);
    return error;
}

EXPORT int MPI_Sendrecv(PARAMETERS(Exchange), MPI_Status *status)
{
    struct sendrecv both = {comm_find(comm), buffer,    count,  type,    to, tag, into,
                            into_count,      into_type, source, into_tag};
    if (both.on) {
        int error = sendrecv_check(&both);
        return TRY(error, sendrecv_do(&both, status));
    }
    if (progress_may_block())
        return PASS(Sendrecv, buffer, count, type, to, tag, into, into_count, into_type, source, into_tag,
                    comm, status);
    MPI_Request sending = handle.request_null, receiving = handle.request_null;
    int error = real.Irecv(into, into_count, into_type, source, into_tag, comm, &receiving);
    TRY(error, real.Isend(buffer, count, type, to, tag, comm, &sending));
    TRY(error, progress_wait(&sending, MPI_STATUS_IGNORE));
    TRY(error, progress_wait(&receiving, status));
    return error;
}
BOTH(Sendrecv);

EXPORT int MPI_Sendrecv_replace(PARAMETERS(Replace), MPI_Status *status)
{
    struct sendrecv both = {comm_find(comm), buffer, count, type,   to,      tag,
                            buffer,          count,  type,  source, into_tag};
    if (!both.on)
        OTHER("Sendrecv_replace", (void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status *),
              buffer, count, type, to, tag, source, into_tag, comm, status);
    int error = sendrecv_check(&both);
    return TRY(error, sendrecv_replace(&both, status));
}
BOTH(Sendrecv_replace);
