/* A tool, preloaded into programs that know of no windows: it makes one itself, by its PMPI names. */
#include <mpi.h>
#define CALL(name) P##name
#include "delivery_put.c"

int MPI_Init(int *argc, char ***argv)
{
    int status = PMPI_Init(argc, argv);
    if (status == MPI_SUCCESS && !put("allocate")) {
        fprintf(stderr, "the tool's window has wrong data\n");
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return status;
}
