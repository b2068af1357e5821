/* Making and starting persistent sends and receives. */
#define _GNU_SOURCE
#include "world/calls/persistent.h"

#include "common/binding/signatures.h"
#include "world/calls/check.h"
#include "world/handles/requests.h"
#include "world/native/data.h"

#include <stdlib.h>

/* The handle that the program gets is a native persistent receive from this process itself. */
int persistent_make(struct persistent made, MPI_Request *request)
{
    struct persistent *persistent = malloc(sizeof *persistent);
    if (!persistent)
        return comm_error(made.comm, MPI_ERR_NO_MEM);
    *persistent = made;
    persistent->active = handle.request_null;
    persistent->has_type =
        !data_is_named(made.type) && real.Type_dup(made.type, &persistent->type) == MPI_SUCCESS;
    int status = real.Recv_init(NULL, 0, handle.byte, 0, 0, ours.self, &persistent->handle);
    TRY(status, request_add_persistent(persistent->handle, persistent));
    if (status != MPI_SUCCESS) {
        if (persistent->has_type)
            real.Type_free(&persistent->type);
        free(persistent);
        return status;
    }
    comm_hold(made.comm);
    *request = persistent->handle;
    return MPI_SUCCESS;
}

static int start_send(const struct persistent *p, MPI_Request *request)
{
    return MPI_Isend(p->buffer, p->count, p->type, p->peer, p->tag, p->comm->handle, request);
}

static int start_ssend(const struct persistent *p, MPI_Request *request)
{
    return MPI_Issend(p->buffer, p->count, p->type, p->peer, p->tag, p->comm->handle, request);
}

static int start_bsend(const struct persistent *p, MPI_Request *request)
{
    return MPI_Ibsend(p->buffer, p->count, p->type, p->peer, p->tag, p->comm->handle, request);
}

static int start_receive(const struct persistent *p, MPI_Request *request)
{
    return MPI_Irecv(p->buffer, p->count, p->type, p->peer, p->tag, p->comm->handle, request);
}

#define SEND_INIT(name, starts)                                                                        \
    EXPORT int MPI_##name(PARAMETERS(Send), MPI_Request *request)                                      \
    {                                                                                                  \
        struct comm *on = comm_find(comm);                                                             \
        if (!on)                                                                                       \
            OTHER(#name, (const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *), buffer, \
                  count, type, to, tag, comm, request);                                                \
        NEEDS(on, request);                                                                            \
        int status = check_send(on, count, type, to, tag);                                             \
        struct persistent made = {on, starts, (void *)buffer, count, to, tag, type, 0, 0, 0, 0};       \
        return TRY(status, persistent_make(made, request));                                            \
    }                                                                                                  \
    BOTH(name)

SEND_INIT(Send_init, start_send);
SEND_INIT(Rsend_init, start_send);
SEND_INIT(Ssend_init, start_ssend);
SEND_INIT(Bsend_init, start_bsend);

EXPORT int MPI_Recv_init(PARAMETERS(Receive), MPI_Request *request)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Recv_init, buffer, count, type, source, tag, comm, request);
    NEEDS(on, request);
    int status = check_receive(on, count, type, source, tag);
    struct persistent made = {on, start_receive, buffer, count, source, tag, type, 0, 0, 0, 0};
    return TRY(status, persistent_make(made, request));
}
BOTH(Recv_init);

EXPORT int MPI_Start(MPI_Request *request)
{
    struct request is = {0};
    if (requests_any() && request)
        is = request_find(*request);
    if (!is.persistent)
        return PASS(Start, request);
    if (is.persistent->active != handle.request_null)
        return comm_error(is.persistent->comm, MPI_ERR_REQUEST);
    return is.persistent->start(is.persistent, &is.persistent->active);
}
BOTH(Start);

EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    if (!requests_any())
        return PASS(Startall, count, requests);
    int status = MPI_SUCCESS;
    for (int i = 0; i < count; i++)
        TRY(status, MPI_Start(&requests[i]));
    return status;
}
BOTH(Startall);
