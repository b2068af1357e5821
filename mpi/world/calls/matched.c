/* Matched probes, and the receives of the messages that they have taken. */
#define _GNU_SOURCE
#include "common/binding/signatures.h"
#include "world/calls/check.h"
#include "world/engine/matching.h"
#include "world/handles/messages.h"
#include "world/handles/requests.h"
#include "world/native/far_wait.h"
#include "world/native/progress.h"
#include "world/native/transfer.h"

static int improbe_here(struct comm *on, int from, int tag, int *flag, MPI_Message *message,
                        MPI_Status *status)
{
    MPI_Status found;
    int native = from == MPI_ANY_SOURCE ? from : on->native[from];
    int error = real.Iprobe(native, tag, on->handle, flag, &found);
    if (error != MPI_SUCCESS || !*flag)
        return error;
    int source = found.MPI_SOURCE, found_tag = found.MPI_TAG;
    transfer_name_source(on, &found);
    /* This message belongs to a receive that was posted earlier. */
    if (engine_is_owed(&on->channel, found.MPI_SOURCE, found_tag)) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    error = real.Improbe(source, found_tag, on->handle, flag, message, &found);
    if (error != MPI_SUCCESS || !*flag)
        return error;
    transfer_name_source(on, &found);
    if (status != MPI_STATUS_IGNORE)
        *status = found;
    return message_note(on, *message);
}

static int improbe(struct comm *on, int from, int tag, int *flag, MPI_Message *message, MPI_Status *status)
{
    struct far far = {0};
    progress();
    struct message *taken = engine_reserve(&on->channel, from == MPI_ANY_SOURCE ? ANY : from,
                                           tag == MPI_ANY_TAG ? ANY : tag, &far.operation);
    *flag = taken != NULL;
    if (taken) {
        far_status(&far, status);
        return message_name(on, taken, message);
    }
    if (from == MPI_ANY_SOURCE || on->native[from] != FAR)
        return improbe_here(on, from, tag, flag, message, status);
    return MPI_SUCCESS;
}

EXPORT int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if (!on || from == MPI_PROC_NULL) {
        if (!progress_may_block())
            progress();
        return PASS(Improbe, from, tag, comm, flag, message, status);
    }
    int error = check_receive(on, 0, handle.byte, from, tag);
    return error == MPI_SUCCESS ? improbe(on, from, tag, flag, message, status) : error;
}
BOTH(Improbe);

EXPORT int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if ((!on || from == MPI_PROC_NULL) && progress_may_block())
        OTHER("Mprobe", (int, int, MPI_Comm, MPI_Message *, MPI_Status *), from, tag, comm, message, status);
    struct pace pace = {0};
    int flag = 0, error = on ? check_receive(on, 0, handle.byte, from, tag) : MPI_SUCCESS;
    while (error == MPI_SUCCESS) {
        error = on && from != MPI_PROC_NULL ? improbe(on, from, tag, &flag, message, status)
                                            : real.Improbe(from, tag, comm, &flag, message, status);
        if (flag || error != MPI_SUCCESS)
            break;
        progress_pause(&pace);
    }
    return error;
}
BOTH(Mprobe);

/* Receives the native message that served as the handle of a far one. */
static int forget_name(MPI_Message *message)
{
    MPI_Request request;
    int error = real.Imrecv(NULL, 0, handle.byte, message, &request);
    return TRY(error, real.Wait(&request, MPI_STATUS_IGNORE));
}

static int receive_far(struct taken taken, void *buffer, int count, MPI_Datatype type, MPI_Status *status)
{
    struct far far;
    int error =
        comm_error(taken.comm, far_receive_reserved(&far, taken.comm, buffer, count, type, taken.far));
    if (error != MPI_SUCCESS)
        return error;
    far_wait(&far);
    far_status(&far, status);
    return far_raise(&far);
}

static int receive_native(struct taken taken, void *buffer, int count, MPI_Datatype type,
                          MPI_Message *message, MPI_Status *status)
{
    MPI_Request request;
    int error = real.Imrecv(buffer, count, type, message, &request);
    TRY(error, progress_may_block() ? real.Wait(&request, status) : progress_wait(&request, status));
    if (taken.comm && error == MPI_SUCCESS)
        transfer_name_source(taken.comm, status);
    return error;
}

EXPORT int MPI_Mrecv(PARAMETERS(Matched), MPI_Status *status)
{
    if (!ours.is_on)
        OTHER("Mrecv", (void *, int, MPI_Datatype, MPI_Message *, MPI_Status *), buffer, count, type, message,
              status);
    struct taken taken = message_take(*message);
    int error = taken.far ? forget_name(message) : MPI_SUCCESS;
    TRY(error, taken.far ? receive_far(taken, buffer, count, type, status)
                         : receive_native(taken, buffer, count, type, message, status));
    if (taken.comm)
        comm_release(taken.comm);
    return error;
}
BOTH(Mrecv);

EXPORT int MPI_Imrecv(PARAMETERS(Matched), MPI_Request *request)
{
    struct taken taken = {0};
    if (ours.is_on)
        taken = message_take(*message);
    if (!taken.comm)
        return PASS(Imrecv, buffer, count, type, message, request);
    int error = taken.far ? forget_name(message) : real.Imrecv(buffer, count, type, message, request);
    if (taken.far)
        TRY(error, comm_error(taken.comm, far_imrecv(taken.comm, buffer, count, type, taken.far, request)));
    else
        TRY(error, request_add_native(*request, taken.comm));
    comm_release(taken.comm);
    return error;
}
BOTH(Imrecv);
