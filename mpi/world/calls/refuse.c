#include "world/calls/refuse.h"

#include <stdio.h>

#if defined(MPI_ERR_UNSUPPORTED_OPERATION)
enum { REFUSED = MPI_ERR_UNSUPPORTED_OPERATION };
#else
enum { REFUSED = MPI_ERR_OTHER };
#endif

int refuse(MPI_Comm comm, const char *function, int *is_told)
{
    if (!*is_told)
        fprintf(
            stderr,
            "causeway world: rank %u: %s does not work on a communicator that spans sites yet; call it on one "
            "within a site (MPI_Comm_split_type, MPI_COMM_TYPE_SHARED), or run at one site\n",
            ours.world.me, function);
    *is_told = 1;
    real.Comm_call_errhandler(comm, REFUSED);
    return REFUSED;
}
