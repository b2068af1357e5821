/* The calls that start persistent requests, some of which are ours. If none is, handles are not read: those
 * of the process's MPI may have another size. */
#define _GNU_SOURCE
#include "collectives/async/persistent.h"
#include "common/binding/export.h"

EXPORT int MPI_Start(MPI_Request *request)
{
    int status = request && persistent_any() ? persistent_start(*request) : MPI_SUCCESS;
    return status == MPI_SUCCESS ? PASS(Start, request) : status;
}
BOTH(Start);

EXPORT int MPI_Startall(int many, MPI_Request requests[])
{
    if (!persistent_any())
        return PASS(Startall, many, requests);
    int status = MPI_SUCCESS;
    for (int i = 0; i < many; i++)
        TRY(status, MPI_Start(&requests[i]));
    return status;
}
BOTH(Startall);
