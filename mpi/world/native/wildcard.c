#include "world/native/wildcard.h"

#include "world/engine/matching.h"
#include "world/native/far.h"

/* Receives that the MPI has begun. */
static struct far *inners;

/* Whether the last wildcard_look has asked on a communicator of several processes. */
static int asked;

static int probe(struct channel *channel, int32_t source, int32_t tag, int32_t *found_source,
                 int32_t *found_tag)
{
    struct comm *comm = channel->owner;
    MPI_Status status;
    int flag = 0;
    asked |= comm->here > 1;
    real.Iprobe(source == ANY ? MPI_ANY_SOURCE : comm->native[source], tag == ANY ? MPI_ANY_TAG : tag,
                comm->handle, &flag, &status);
    if (!flag)
        return 0;
    *found_source = comm->rank_of[status.MPI_SOURCE];
    *found_tag = status.MPI_TAG;
    return 1;
}

static void take(struct channel *channel, int32_t source, int32_t tag, struct operation *receive)
{
    struct comm *comm = channel->owner;
    struct far *far = (struct far *)receive;
    MPI_Message message;
    int flag = 0;
    real.Improbe(comm->native[source], tag, comm->handle, &flag, &message, MPI_STATUS_IGNORE);
    far->error =
        flag ? real.Imrecv(far->buffer, far->count, far->type, &message, &far->inner) : MPI_ERR_OTHER;
    if (far->error != MPI_SUCCESS)
        far->inner = handle.request_null;
    far->next_inner = inners;
    inners = far;
}

static void finish(struct far *far, int error, const MPI_Status *status)
{
    MPI_Count bytes = 0;
    if (error == MPI_SUCCESS)
        error = real.Get_elements_x(status, handle.byte, &bytes);
    far->error = far->error ? far->error : error;
    far->is_raised = far->error != MPI_SUCCESS;
    far->operation.source = far->comm->rank_of[status->MPI_SOURCE];
    far->operation.tag = status->MPI_TAG;
    far->operation.bytes = far->operation.sent = (uint64_t)bytes;
    engine_native_done(ours.engine, &far->operation);
}

static const struct native native = {probe, take};

int wildcard_look(void)
{
    asked = 0;
    int did = engine_match_native(ours.engine, &native);
    for (struct far **at = &inners; *at;) {
        struct far *far = *at;
        MPI_Status status = {.MPI_SOURCE = 0};
        int flag = 0, error = real.Test(&far->inner, &flag, &status);
        if (!flag && error == MPI_SUCCESS) {
            at = &far->next_inner;
            continue;
        }
        *at = far->next_inner;
        finish(far, error, &status);
        did++;
    }
    return did;
}

int wildcard_asks(void) { return asked; }
