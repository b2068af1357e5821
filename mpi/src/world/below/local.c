#include "world/below/local.h"

int local_meet(MPI_Comm comm)
{
    if (!ours.is_on || look_has_hook)
        return MPI_SUCCESS;
    MPI_Request request;
    int status = real.Ibarrier(comm, &request);
    return status == MPI_SUCCESS ? look_wait(&request, MPI_STATUS_IGNORE) : status;
}
