/* Whether MPICH waits for the far side of a send. delivery VALUE [OWN]: what its setting must be, and what the environment says of it after MPI_Init, if anything. delivery_windows
 * makes a window, puts more into it than MPICH can where it does not wait, and looks at what arrives. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rma_setting(void)
{
    int provided, index, count, value;
    MPI_T_cvar_handle handle;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS ||
        MPI_T_cvar_get_index("MPIR_CVAR_CH4_OFI_ENABLE_RMA", &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS || MPI_T_cvar_read(handle, &value) != MPI_SUCCESS) {
        fprintf(stderr, "MPICH does not tell MPIR_CVAR_CH4_OFI_ENABLE_RMA\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 0;
    }
    MPI_T_cvar_handle_free(&handle);
    MPI_T_finalize();
    return value;
}

#ifdef WINDOWS
enum { BYTES = 1 << 18 };

static int put(int rank, int ranks)
{
    static char from[BYTES];
    char *memory;
    MPI_Win window;
    memset(from, rank + 1, BYTES);
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put(from, BYTES, MPI_BYTE, (rank + 1) % ranks, 0, BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    int right = memory[0] == (rank + ranks - 1) % ranks + 1 && memcmp(memory, memory + 1, BYTES - 1) == 0;
    MPI_Win_free(&window);
    return right;
}
#else
static int put(int rank, int ranks) { return rank < ranks; }
#endif

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *said = getenv("MPIR_CVAR_CH4_OFI_ENABLE_RMA");
    int value = rma_setting(), wanted = argc > 1 ? atoi(argv[1]) : -1, all;
    int is_own = argc > 2 ? said && strcmp(said, argv[2]) == 0 : !said;
    if (value != wanted || !is_own)
        fprintf(stderr, "rank %d: MPIR_CVAR_CH4_OFI_ENABLE_RMA is %d, not %d, or the environment says %s\n", rank, value, wanted, said ? said : "nothing");
    int right = value == wanted && is_own && put(rank, ranks);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all ? "all right" : "WRONG");
    MPI_Finalize();
    return !all;
}
