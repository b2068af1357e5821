/* A send and a receive in one request, over sites: a task that waits for both. */
#define _GNU_SOURCE
#include "common/binding/signatures.h"
#include "world/calls/refuse.h"
#include "world/calls/sendrecv.h"
#include "world/native/task.h"

#include <stdlib.h>

/* A copy of the call, with duplicates of the datatypes, because the program may free its own. */
struct started {
    struct sendrecv both;
    int (*run)(const struct sendrecv *both, MPI_Status *status);
    int owns_out, owns_in;
};

static int own(MPI_Datatype *type)
{
    MPI_Datatype copy;
    if (data_is_named(*type) || real.Type_dup(*type, &copy) != MPI_SUCCESS)
        return 0;
    *type = copy;
    return 1;
}

static int run(void *of)
{
    const struct started *started = of;
    MPI_Status status;
    int error = started->run(&started->both, &status);
    task_receives(&status);
    return error;
}

static void end(void *of)
{
    struct started *started = of;
    if (started->owns_out)
        real.Type_free(&started->both.out_type);
    if (started->owns_in)
        real.Type_free(&started->both.in_type);
    free(started);
}

static int start(const struct sendrecv *both, int (*how)(const struct sendrecv *, MPI_Status *),
                 MPI_Request *request)
{
    int error = sendrecv_check(both);
    if (error != MPI_SUCCESS)
        return error;
    struct started *started = malloc(sizeof *started);
    if (!started)
        return comm_error(both->on, MPI_ERR_NO_MEM);
    *started = (struct started){.both = *both, .run = how};
    started->owns_out = own(&started->both.out_type);
    started->owns_in = own(&started->both.in_type);
    struct work work = {run, end, started};
    error = task_start_alone(both->on, &work, request);
    if (error != MPI_SUCCESS)
        end(started);
    return comm_error(both->on, error);
}

EXPORT int MPI_Isendrecv(PARAMETERS(Exchange), MPI_Request *request)
{
    struct sendrecv both = {comm_find(comm), buffer,    count,  type,    to, tag, into,
                            into_count,      into_type, source, into_tag};
    if (both.on)
        return start(&both, sendrecv_do, request);
    OTHER("Isendrecv",
          (const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm,
           MPI_Request *),
          buffer, count, type, to, tag, into, into_count, into_type, source, into_tag, comm, request);
}
BOTH(Isendrecv);

EXPORT int MPI_Isendrecv_replace(PARAMETERS(Replace), MPI_Request *request)
{
    struct sendrecv both = {comm_find(comm), buffer, count, type,   to,      tag,
                            buffer,          count,  type,  source, into_tag};
    if (both.on)
        return start(&both, sendrecv_replace, request);
    OTHER("Isendrecv_replace", (void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request *),
          buffer, count, type, to, tag, source, into_tag, comm, request);
}
BOTH(Isendrecv_replace);
