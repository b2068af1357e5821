/* Tests whether MPICH waits for the far side of a send: delivery VALUE [OWN [WAY [early]]]. VALUE is what its
 * setting must be. OWN is what the environment says of it after MPI_Init (- for nothing). WAY is how a
 * program that is built with PUT makes its window (delivery_put.c). An early one has asked MPICH for its
 * settings before MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PUT
int put(const char *way);
#else
static int put(const char *way) { return way != NULL; }
#endif

static int rma_setting(void)
{
    int provided, index, count, value;
    MPI_T_cvar_handle handle;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS ||
        MPI_T_cvar_get_index("MPIR_CVAR_CH4_OFI_ENABLE_RMA", &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS ||
        MPI_T_cvar_read(handle, &value) != MPI_SUCCESS) {
        fprintf(stderr, "MPICH does not tell MPIR_CVAR_CH4_OFI_ENABLE_RMA\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 0;
    }
    MPI_T_cvar_handle_free(&handle);
    MPI_T_finalize();
    return value;
}

int main(int argc, char **argv)
{
    int rank, all, unused;
    if (argc > 4)
        MPI_T_init_thread(MPI_THREAD_SINGLE, &unused);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *said = getenv("MPIR_CVAR_CH4_OFI_ENABLE_RMA"), *way = argc > 3 ? argv[3] : "allocate";
    int value = rma_setting(), wanted = argc > 1 ? atoi(argv[1]) : -1;
    int is_own = argc > 2 && strcmp(argv[2], "-") != 0 ? said && strcmp(said, argv[2]) == 0 : !said;
    if (value != wanted || !is_own)
        fprintf(stderr, "rank %d: MPIR_CVAR_CH4_OFI_ENABLE_RMA is %d, not %d, or the environment says %s\n",
                rank, value, wanted, said ? said : "nothing");
    int right = value == wanted && is_own && put(way);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all ? "all right" : "WRONG");
    MPI_Finalize();
    return !all;
}
