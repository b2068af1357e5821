/* One receive or send that crosses sites, or that may: the program's buffer, the engine's operation, and the
 * request if the program has one. */
#ifndef CAUSEWAY_WORLD_FAR_H
#define CAUSEWAY_WORLD_FAR_H

#include "world/engine/operation.h"
#include "world/handles/comms.h"
#include "world/native/data.h"
#include "world/native/unlike.h"

struct far {
    /* First, because the engine returns its address. */
    struct operation operation;
    struct comm *comm;
    void *buffer;
    int count;
    MPI_Datatype type;
    struct shape shape;
    /* Where there are numbers that an unlike site keeps in another form; NULL if there are none. */
    struct form_map *map;
    /* Whether `type` is our duplicate, because the program may free its own. */
    int has_type;
    /* Its error; whether the error handler has been called for it; whether far_finish has been called. */
    int error, is_raised, is_finished;
    /* The native request of a receive that the site's MPI has begun. */
    MPI_Request inner;
    struct far *next_inner;
    /* The generalised request. While a completion call holds the record, the record outlives the request. */
    int has_request, is_held, is_freed;
    MPI_Request request;
};

/* A buffered send is copied, so that it needs no buffer of the program. */
enum far_mode { STANDARD, SYNCHRONOUS, BUFFERED };

/* Begin a send or receive, whose arguments must be valid. With a request, the record is in memory of its own;
 * without one, it belongs to the caller, who keeps it until far_is_done. They return an MPI error code; if
 * that is not MPI_SUCCESS, nothing has begun. */
int far_send(struct far *far, struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to,
             int tag, enum far_mode mode);
int far_receive(struct far *far, struct comm *comm, void *buffer, int count, MPI_Datatype type, int from,
                int tag);

/* Receives a message that a matched probe has reserved. */
int far_receive_reserved(struct far *far, struct comm *comm, void *buffer, int count, MPI_Datatype type,
                         struct message *message);

/* The same with requests. */
int far_isend(struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to, int tag,
              enum far_mode mode, MPI_Request *request);
int far_irecv(struct comm *comm, void *buffer, int count, MPI_Datatype type, int from, int tag,
              MPI_Request *request);

int far_imrecv(struct comm *comm, void *buffer, int count, MPI_Datatype type, struct message *message,
               MPI_Request *request);

/* Gives the operation a request, and holds its communicator. The caller then completes an operation that is
 * already done. */
int far_request(struct far *far, MPI_Request *request);

static inline int far_is_done(const struct far *far) { return far->operation.state == OPERATION_DONE; }

/* Called once or more after the operation is done: unpacks, and returns the operation's error. */
int far_finish(struct far *far);
/* Calls the error handler if the operation has failed and it has not been called yet. Returns the error. */
int far_raise(struct far *far);
/* Fills in a status, except its error field. */
void far_status(const struct far *far, MPI_Status *status);
/* Completes the request of an operation that is done. Called at the end of progress(). */
void far_complete(struct far *far);
/* Tries to cancel the operation. */
void far_cancel(struct far *far);
/* Keep the record while its request is completed, and release it. */
void far_hold(struct far *far);
void far_release(struct far *far);

#endif
