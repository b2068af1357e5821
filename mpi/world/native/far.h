/* One receive or send that crosses sites, or that may: the program's buffer, the engine's operation, and the
 * request where the program has one. */
#ifndef CAUSEWAY_WORLD_FAR_H
#define CAUSEWAY_WORLD_FAR_H

#include "world/engine/operation.h"
#include "world/handles/comms.h"
#include "world/native/data.h"
#include "world/native/unlike.h"

struct far {
    /* First: the engine hands its address back. */
    struct operation operation;
    struct comm *comm;
    void *buffer;
    int count;
    MPI_Datatype type;
    struct shape shape;
    /* Where numbers are that an unlike site keeps in another form. NULL: nowhere. */
    struct form_map *map;
    /* The type is a duplicate of ours: the program may free its own. */
    int has_type;
    /* Its error; the MPI has called the error handler for it. */
    int error, is_raised, is_finished;
    /* A receive that the site's MPI has begun. */
    MPI_Request inner;
    struct far *next_inner;
    /* The generalised request. While a completion call holds the record it outlives the request. */
    int has_request, is_held, is_freed;
    MPI_Request request;
};

/* A buffered send is copied here, so that it needs no buffer of the program. */
enum far_mode { STANDARD, SYNCHRONOUS, BUFFERED };

/* Begin a send or receive of arguments that are right. With a request the record is in memory of its own;
 * without, it is the caller's until far_is_done. They return an MPI's code; where it is not MPI_SUCCESS
 * nothing has begun. */
int far_send(struct far *far, struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to,
             int tag, enum far_mode mode);
int far_receive(struct far *far, struct comm *comm, void *buffer, int count, MPI_Datatype type, int from,
                int tag);

/* Receives a message that a matched probe has reserved. */
int far_receive_reserved(struct far *far, struct comm *comm, void *buffer, int count, MPI_Datatype type,
                         struct message *message);

/* The same as requests. */
int far_isend(struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to, int tag,
              enum far_mode mode, MPI_Request *request);
int far_irecv(struct comm *comm, void *buffer, int count, MPI_Datatype type, int from, int tag,
              MPI_Request *request);

int far_imrecv(struct comm *comm, void *buffer, int count, MPI_Datatype type, struct message *message,
               MPI_Request *request);

/* Gives the operation a request, and holds its communicator. One that is done already is completed next. */
int far_request(struct far *far, MPI_Request *request);

static inline int far_is_done(const struct far *far) { return far->operation.state == OPERATION_DONE; }

/* After that: unpacks, and returns the operation's error. It is called once or more. */
int far_finish(struct far *far);
/* Calls the error handler where the operation has failed and nobody has; returns the error. */
int far_raise(struct far *far);
/* Fills a status in; the error field is left. */
void far_status(const struct far *far, MPI_Status *status);
/* Completes requests whose operations are done. Called at the end of progress(). */
void far_complete(struct far *far);
/* Tries to take it back. */
void far_cancel(struct far *far);
/* Keeps the record while its request is completed; lets it go. */
void far_hold(struct far *far);
void far_release(struct far *far);

#endif
