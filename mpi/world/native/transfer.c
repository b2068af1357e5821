#include "world/native/transfer.h"

#include "common/binding/texts.h"
#include "world/engine/matching.h"
#include "world/handles/slots.h"
#include "world/native/far_wait.h"
#include "world/native/progress.h"

#include <stdio.h>

int transfer_is_native(const struct comm *comm, int from, int tag)
{
    return from == MPI_PROC_NULL ||
           (from != MPI_ANY_SOURCE && comm->native[from] != FAR &&
            !engine_must_queue(&comm->channel, from, tag == MPI_ANY_TAG ? ANY : tag));
}

static int native_rank(const struct comm *comm, int rank)
{
    return rank == MPI_PROC_NULL ? MPI_PROC_NULL : comm->native[rank];
}

void transfer_name_source(const struct comm *comm, MPI_Status *status)
{
    if (status != MPI_STATUS_IGNORE && status->MPI_SOURCE >= 0 && status->MPI_SOURCE < comm->here)
        status->MPI_SOURCE = comm->rank_of[status->MPI_SOURCE];
}

/* The error handler of the communicator has already been called for errors of native calls, but not for those
 * of far ones. On a hidden communicator errors belong to the collective operation, and those of a task to its
 * request. */
static int raise(const struct comm *comm, int status)
{
    return comm->hidden && !task_is_running() ? comm_error(comm, status) : status;
}

/* A transfer that has not begun is not waited for. */
static int begun(struct transfer *transfer, int status)
{
    if (status != MPI_SUCCESS)
        transfer->kind = NOTHING;
    return status;
}

/* A task has tags of its own. */
static int tag_of(const struct comm *comm, int tag) { return comm->hidden ? tag : tag + task_tags(); }

/* Within the site, a message of a hidden communicator carries its receiver's slot. */
static int tag_to(const struct comm *comm, int tag, int to)
{
    return comm->slots && to != MPI_PROC_NULL ? comm->slots[to] * SLOT_TAGS + tag : tag;
}
static int tag_from(const struct comm *comm, int tag)
{
    return comm->slots ? comm->slot * SLOT_TAGS + tag : tag;
}

int transfer_send(struct transfer *transfer, struct comm *comm, const void *buffer, int count,
                  MPI_Datatype type, int to, int tag)
{
    transfer->comm = comm;
    tag = tag_of(comm, tag);
    if (to != MPI_PROC_NULL && comm->native[to] == FAR) {
        transfer->kind = FAR_AWAY;
        int status = far_send(&transfer->far, comm, buffer, count, type, to, tag, STANDARD);
        return begun(transfer, raise(comm, status));
    }
    transfer->kind = NATIVE;
    return begun(transfer, real.Isend(buffer, count, type, native_rank(comm, to), tag_to(comm, tag, to),
                                      comm->carrier, &transfer->request));
}

int transfer_receive(struct transfer *transfer, struct comm *comm, void *buffer, int count, MPI_Datatype type,
                     int from, int tag)
{
    transfer->comm = comm;
    tag = tag_of(comm, tag);
    if (!transfer_is_native(comm, from, tag)) {
        transfer->kind = FAR_AWAY;
        return begun(transfer,
                     raise(comm, far_receive(&transfer->far, comm, buffer, count, type, from, tag)));
    }
    transfer->kind = NATIVE_RECEIVE;
    return begun(transfer, real.Irecv(buffer, count, type, native_rank(comm, from), tag_from(comm, tag),
                                      comm->carrier, &transfer->request));
}

/* In a collective operation both ends of a message give its length. The lengths of texts may differ, because
 * different MPIs give them different ones. */
static int judge_length(const struct far *far, int error)
{
    const struct operation *operation = &far->operation;
    int64_t room = far->count * far->shape.bytes, sent = (int64_t)operation->sent;
    if (operation->is_send || operation->is_cancelled || sent == room ||
        (error != MPI_SUCCESS && error != MPI_ERR_TRUNCATE))
        return error;
    if (error == MPI_SUCCESS && texts_are_one(sent, room) &&
        (sent > room || (far->shape.is_plain && texts_settle(far->buffer, room, sent))))
        return error;
    fprintf(stderr,
            "causeway world: a collective operation: rank %d has sent %lld bytes to rank %u, which expects "
            "%lld (ranks of MPI_COMM_WORLD): both have to name as many\n",
            far->comm->peer_numbers[operation->source], (long long)sent, ours.world.me, (long long)room);
    return MPI_ERR_TRUNCATE;
}

int transfer_wait(struct transfer *transfer, MPI_Status *status)
{
    int error = MPI_SUCCESS;
    switch (transfer->kind) {
    case NOTHING:
        break;
    case NATIVE:
    case NATIVE_RECEIVE:
        error = progress_may_block() ? real.Wait(&transfer->request, status)
                                     : progress_wait(&transfer->request, status);
        if (error == MPI_SUCCESS && transfer->kind == NATIVE_RECEIVE)
            transfer_name_source(transfer->comm, status);
        break;
    case FAR_AWAY:
        error = far_wait(&transfer->far);
        if (!transfer->comm->hidden)
            error = judge_length(&transfer->far, error);
        else if (!task_is_running())
            far_raise(&transfer->far);
        far_status(&transfer->far, status);
    }
    transfer->kind = NOTHING;
    return error;
}

int transfer_wait_all(struct transfer *transfers, int count)
{
    int first = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        int status = transfer_wait(&transfers[i], MPI_STATUS_IGNORE);
        first = first != MPI_SUCCESS ? first : status;
    }
    return first;
}

int transfer_send_now(struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to, int tag)
{
    if ((to == MPI_PROC_NULL || comm->native[to] != FAR) && progress_may_block())
        return real.Send(buffer, count, type, native_rank(comm, to), tag_to(comm, tag, to), comm->carrier);
    struct transfer transfer;
    int status = transfer_send(&transfer, comm, buffer, count, type, to, tag);
    return status == MPI_SUCCESS ? transfer_wait(&transfer, MPI_STATUS_IGNORE) : status;
}

int transfer_receive_now(struct comm *comm, void *buffer, int count, MPI_Datatype type, int from, int tag,
                         MPI_Status *status)
{
    if (progress_may_block() && transfer_is_native(comm, from, tag)) {
        int error = real.Recv(buffer, count, type, native_rank(comm, from), tag_from(comm, tag),
                              comm->carrier, status);
        transfer_name_source(comm, status);
        return error;
    }
    struct transfer transfer;
    int error = transfer_receive(&transfer, comm, buffer, count, type, from, tag);
    return error == MPI_SUCCESS ? transfer_wait(&transfer, status) : error;
}
