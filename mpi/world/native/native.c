#include "world/native/native.h"

int native_meet(MPI_Comm comm)
{
    if (!ours.is_on || progress_has_hook)
        return MPI_SUCCESS;
    MPI_Request request;
    int is_inter = 0, status = real.Comm_test_inter(comm, &is_inter);
    /* A rank that leaves the first barrier of an intercommunicator knows that the other group has arrived;
     * one that leaves the second knows that its own group has. */
    for (int round = 0; round <= is_inter; round++) {
        TRY(status, real.Ibarrier(comm, &request));
        TRY(status, progress_wait(&request, MPI_STATUS_IGNORE));
    }
    return status;
}

int native_is_inter(MPI_Comm comm)
{
    int is_inter = 0;
    return ours.is_on && !progress_has_hook && comm != handle.comm_null &&
           real.Comm_test_inter(comm, &is_inter) == MPI_SUCCESS && is_inter;
}
