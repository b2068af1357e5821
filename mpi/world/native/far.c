#include "world/native/far.h"

#include "common/binding/texts.h"
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/handles/requests.h"
#include "world/streams/streams.h"

#include <stdlib.h>

static int begin(struct far *far, struct comm *comm, void *buffer, int count, MPI_Datatype type)
{
    *far = (struct far){.comm = comm, .buffer = buffer, .count = count, .type = type};
    far->operation.channel = &comm->channel;
    int status = count < 0 ? MPI_ERR_COUNT : data_shape(type, &far->shape);
    int has_data = status == MPI_SUCCESS && count > 0 && far->shape.bytes > 0;
    return has_data && !buffer && far->shape.is_plain ? MPI_ERR_BUFFER : status;
}

int far_send(struct far *far, struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to,
             int tag, enum far_mode mode)
{
    int status = begin(far, comm, (void *)buffer, count, type);
    if (status != MPI_SUCCESS)
        return status;
    struct operation *send = &far->operation;
    send->room = (uint64_t)(count * far->shape.bytes);
    send->buffer = far->buffer;
    send->source = to;
    send->tag = tag;
    send->is_sync = mode == SYNCHRONOUS;
    if ((!far->shape.is_plain || mode == BUFFERED) && send->room) {
        send->buffer = malloc(send->room);
        if (!send->buffer)
            return MPI_ERR_NO_MEM;
        status = data_pack(buffer, count, type, &far->shape, send->buffer);
        if (status != MPI_SUCCESS) {
            free(send->buffer);
            return status;
        }
        send->has_own_memory = 1;
    }
    engine_send(ours.engine, send, (uint32_t)comm->rank);
    uint32_t peer = (uint32_t)comm->peer_numbers[to];
    streams_want(peer);
    streams_write(peer);
    if (send->state != OPERATION_DONE)
        engine_copy(ours.engine, send);
    streams_hear(peer);
    return MPI_SUCCESS;
}

/* Data that may have to be converted is received into memory of the engine. */
static int begin_map(struct far *far)
{
    int status = unlike_map(far->type, &far->map);
    if (far->map)
        far->shape.is_plain = 0;
    return status;
}

static struct operation *begin_receive(struct far *far)
{
    struct operation *receive = &far->operation;
    receive->room = (uint64_t)(far->count * far->shape.bytes);
    receive->buffer = far->shape.is_plain ? far->buffer : NULL;
    ours.receives++;
    comm_hold(far->comm);
    return receive;
}

/* A receive that takes data which had already arrived has something to tell its sender: that it is matched,
 * or that there is room again. This writes it at once, because there may be no further progress if the
 * receive has all of its message. */
static void answer(const struct far *far)
{
    const struct operation *receive = &far->operation;
    if (receive->state != OPERATION_WAITS && receive->source >= 0 &&
        far->comm->native[receive->source] == FAR)
        streams_write((uint32_t)far->comm->peer_numbers[receive->source]);
}

int far_receive(struct far *far, struct comm *comm, void *buffer, int count, MPI_Datatype type, int from,
                int tag)
{
    int status = begin(far, comm, buffer, count, type);
    TRY(status, begin_map(far));
    if (status != MPI_SUCCESS)
        return status;
    struct operation *receive = begin_receive(far);
    receive->source = from == MPI_ANY_SOURCE ? ANY : from;
    receive->tag = tag == MPI_ANY_TAG ? ANY : tag;
    receive->may_be_native = from == MPI_ANY_SOURCE || comm->native[from] != FAR;
    engine_post(ours.engine, receive);
    answer(far);
    return MPI_SUCCESS;
}

int far_receive_reserved(struct far *far, struct comm *comm, void *buffer, int count, MPI_Datatype type,
                         struct message *message)
{
    int status = begin(far, comm, buffer, count, type);
    TRY(status, begin_map(far));
    if (status == MPI_SUCCESS) {
        engine_receive_reserved(ours.engine, message, begin_receive(far));
        answer(far);
    }
    return status;
}

/* A message that is too long is an error, unless the excess is the unused end of a text. */
static int is_too_long(const struct operation *operation)
{
    return operation->is_truncated &&
           !(texts_are_one((int64_t)operation->sent, (int64_t)operation->room) &&
             texts_settle(operation->buffer, (int64_t)operation->room, (int64_t)operation->sent));
}

static int unpack(struct far *far)
{
    const struct operation *operation = &far->operation;
    int64_t bytes = (int64_t)operation->bytes;
    if (far->map)
        unlike_convert(&ours.world, (uint32_t)far->comm->peer_numbers[operation->source], far->map,
                       operation->buffer, bytes);
    return data_unpack(operation->buffer, bytes, far->buffer, far->type, &far->shape);
}

int far_finish(struct far *far)
{
    struct operation *operation = &far->operation;
    if (far->is_finished)
        return far->error;
    far->is_finished = 1;
    if (operation->has_no_memory)
        far->error = MPI_ERR_NO_MEM;
    else if (is_too_long(operation))
        far->error = MPI_ERR_TRUNCATE;
    if (operation->is_send)
        return far->error;
    ours.receives--;
    if (operation->has_own_memory && !far->error)
        far->error = unpack(far);
    if (operation->has_own_memory)
        free(operation->buffer);
    form_map_free(far->map);
    far->map = NULL;
    comm_release(far->comm);
    return far->error;
}

int far_raise(struct far *far)
{
    if (far->error && !far->is_raised)
        comm_error(far->comm, far->error);
    far->is_raised = 1;
    return far->error;
}

void far_status(const struct far *far, MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    const struct operation *operation = &far->operation;
    int is_receive = !operation->is_send && !operation->is_cancelled;
    uint64_t bytes = far->error == MPI_ERR_TRUNCATE ? operation->sent : operation->bytes;
    real.Status_set_elements_x(status, handle.byte, is_receive ? (MPI_Count)bytes : 0);
    real.Status_set_cancelled(status, operation->is_cancelled);
    status->MPI_SOURCE = is_receive ? operation->source : MPI_ANY_SOURCE;
    status->MPI_TAG = is_receive ? operation->tag : MPI_ANY_TAG;
}

static int query(void *extra, MPI_Status *status)
{
    far_status(extra, status);
    return MPI_SUCCESS;
}

static void end(struct far *far)
{
    comm_release(far->comm);
    if (far->has_type)
        real.Type_free(&far->type);
    free(far);
}

static int freed(void *extra)
{
    struct far *far = extra;
    if (far->is_held)
        far->is_freed = 1;
    else
        end(far);
    return MPI_SUCCESS;
}

static int cancelled(void *extra, int is_complete)
{
    if (!is_complete)
        far_cancel(extra);
    return MPI_SUCCESS;
}

void far_hold(struct far *far) { far->is_held++; }

void far_release(struct far *far)
{
    if (--far->is_held == 0 && far->is_freed)
        end(far);
}

void far_complete(struct far *far)
{
    far_finish(far);
    if (far->has_request)
        real.Grequest_complete(far->request);
}

void far_cancel(struct far *far)
{
    if (far_is_done(far))
        return;
    if (far->operation.is_send)
        engine_cancel_send(ours.engine, &far->operation);
    else
        engine_cancel_receive(ours.engine, &far->operation);
}

int far_request(struct far *far, MPI_Request *request)
{
    int status = real.Grequest_start(query, freed, cancelled, far, &far->request);
    if (status != MPI_SUCCESS)
        return status;
    far->has_request = 1;
    comm_hold(far->comm);
    *request = far->request;
    return request_add_far(far->request, far);
}

int far_isend(struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to, int tag,
              enum far_mode mode, MPI_Request *request)
{
    struct far *far = malloc(sizeof *far);
    int status = far ? far_send(far, comm, buffer, count, type, to, tag, mode) : MPI_ERR_NO_MEM;
    if (status != MPI_SUCCESS) {
        free(far);
        return status;
    }
    status = far_request(far, request);
    if (far_is_done(far))
        far_complete(far);
    else
        far->operation.is_told = 1;
    return status;
}

/* The same for a receive, which has begun if `status` is MPI_SUCCESS. */
static int request_receive(struct far *far, int status, MPI_Request *request)
{
    if (status != MPI_SUCCESS) {
        free(far);
        return status;
    }
    status = far_request(far, request);
    if (far_is_done(far)) {
        far_complete(far);
        return status;
    }
    far->operation.is_told = 1;
    if (!data_is_named(far->type) && real.Type_dup(far->type, &far->type) == MPI_SUCCESS)
        far->has_type = 1;
    return status;
}

int far_irecv(struct comm *comm, void *buffer, int count, MPI_Datatype type, int from, int tag,
              MPI_Request *request)
{
    struct far *far = malloc(sizeof *far);
    int status = far ? far_receive(far, comm, buffer, count, type, from, tag) : MPI_ERR_NO_MEM;
    return request_receive(far, status, request);
}

int far_imrecv(struct comm *comm, void *buffer, int count, MPI_Datatype type, struct message *message,
               MPI_Request *request)
{
    struct far *far = malloc(sizeof *far);
    int status = far ? far_receive_reserved(far, comm, buffer, count, type, message) : MPI_ERR_NO_MEM;
    return request_receive(far, status, request);
}
