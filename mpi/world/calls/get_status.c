/* Calls that test whether requests are complete, without freeing them. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/calls/kept.h"
#include "world/native/progress.h"
#include "world/native/transfer.h"

#include <stdlib.h>
#include <string.h>

/* A copy of the program's requests, in which active persistent ones are replaced by the requests of their
 * messages. */
struct asked {
    struct keeping keeping;
    MPI_Request few[16], *requests;
    int is_kept;
};

static void ask(struct asked *asked, int count, const MPI_Request requests[])
{
    progress_if_needed();
    asked->requests = (MPI_Request *)requests;
    asked->is_kept = 0;
    if (count <= 0 || !requests_any())
        return;
    MPI_Request *copy = asked->few;
    if ((size_t)count > sizeof asked->few / sizeof *copy)
        copy = malloc((size_t)count * sizeof *copy);
    if (!copy)
        return;
    memcpy(copy, requests, (size_t)count * sizeof *copy);
    asked->requests = copy;
    asked->is_kept = keep(&asked->keeping, count, copy);
}

/* Called for each complete request i. */
static void is_complete(struct asked *asked, int i, MPI_Status *status)
{
    if (asked->is_kept && asked->keeping.all[i].is.comm)
        transfer_name_source(asked->keeping.all[i].is.comm, status);
}

static void end(struct asked *asked, const MPI_Request requests[])
{
    if (asked->is_kept)
        keep_end(&asked->keeping);
    if (asked->requests != asked->few && asked->requests != requests)
        free(asked->requests);
}

static MPI_Status *status_at(MPI_Status statuses[], int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

EXPORT int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct asked asked;
    ask(&asked, 1, &request);
    int error = PASS(Request_get_status, asked.requests[0], flag, status);
    if (error == MPI_SUCCESS && *flag)
        is_complete(&asked, 0, status);
    end(&asked, &request);
    return error;
}
BOTH(Request_get_status);

/* The following functions are new in MPI 4.1. A program that calls them has an MPI that has them. */

EXPORT int MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag,
                                      MPI_Status statuses[])
{
    int (*own)(int, const MPI_Request[], int *, MPI_Status[]) =
        (int (*)(int, const MPI_Request[], int *, MPI_Status[]))mpi_calls_find("Request_get_status_all");
    if (!own)
        return NO_MPI;
    struct asked asked;
    ask(&asked, count, requests);
    int error = own(count, asked.requests, flag, statuses);
    for (int i = 0; error == MPI_SUCCESS && *flag && i < count; i++)
        is_complete(&asked, i, status_at(statuses, i));
    end(&asked, requests);
    return error;
}
BOTH(Request_get_status_all);

EXPORT int MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
                                      MPI_Status *status)
{
    int (*own)(int, const MPI_Request[], int *, int *, MPI_Status *) = (int (*)(
        int, const MPI_Request[], int *, int *, MPI_Status *))mpi_calls_find("Request_get_status_any");
    if (!own)
        return NO_MPI;
    struct asked asked;
    ask(&asked, count, requests);
    int error = own(count, asked.requests, index, flag, status);
    if (error == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED)
        is_complete(&asked, *index, status);
    end(&asked, requests);
    return error;
}
BOTH(Request_get_status_any);

EXPORT int MPI_Request_get_status_some(int count, const MPI_Request requests[], int *out, int indices[],
                                       MPI_Status statuses[])
{
    int (*own)(int, const MPI_Request[], int *, int[], MPI_Status[]) = (int (*)(
        int, const MPI_Request[], int *, int[], MPI_Status[]))mpi_calls_find("Request_get_status_some");
    if (!own)
        return NO_MPI;
    struct asked asked;
    ask(&asked, count, requests);
    int error = own(count, asked.requests, out, indices, statuses);
    for (int k = 0; error == MPI_SUCCESS && *out != MPI_UNDEFINED && k < *out; k++)
        is_complete(&asked, indices[k], status_at(statuses, k));
    end(&asked, requests);
    return error;
}
BOTH(Request_get_status_some);
