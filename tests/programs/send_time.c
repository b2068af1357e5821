/* How long MPI_Isend and MPI_Wait take at rank 0, in microseconds, for a message that rank 1 awaits:
 * send_time ROUNDS. Rows: size_bytes,round,microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const int sizes[] = {8, 128, 129, 1024, 8192, 16384, 65536, 262144, 1048576};
static char buffer[1048576];

int main(int argc, char **argv)
{
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        puts("size_bytes,round,microseconds");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int round = 0; round < rounds; round++) {
            MPI_Request request = MPI_REQUEST_NULL;
            if (rank == 1)
                MPI_Irecv(buffer, sizes[i], MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            double began = MPI_Wtime();
            if (rank == 0)
                MPI_Isend(buffer, sizes[i], MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (rank == 0)
                printf("%d,%d,%.1f\n", sizes[i], round, (MPI_Wtime() - began) * 1e6);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    MPI_Finalize();
    return 0;
}
