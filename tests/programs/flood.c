/* Messages in a row from rank 0 to rank 1, which receives one after the other: for each size, how long all of
 * them take, twice.
 *
 *     mpirun -n 2 flood COUNT
 *
 * Fewer than COUNT where they would be more than 200 MB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 200000000 };

static const int sizes[] = {4, 64, 512, 2048, 4096, 16384, 65536, 262144};

int main(int argc, char **argv)
{
    static char bytes[262144];
    int rank, wanted = argc > 1 ? atoi(argv[1]) : 20000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(bytes, rank, sizeof bytes);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        int size = sizes[i / 2], count = wanted < MOST_BYTES / size ? wanted : MOST_BYTES / size;
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime();
        for (int k = 0; k < count && rank == 0; k++)
            MPI_Send(bytes, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        for (int k = 0; k < count && rank == 1; k++)
            MPI_Recv(bytes, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("flood: %d,%d,%d,%.3f\n", size, count, (int)(i % 2), MPI_Wtime() - began);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
