/* adds TOTAL STEPS: so many additions, shared by the ranks, with a reduction of 8 bytes after each step. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: adds TOTAL STEPS\n");
        return 1;
    }
    MPI_Init(&argc, &argv);
    long total = atol(argv[1]);
    int steps = atoi(argv[2]);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    volatile double own = 0;
    double sum = 0;
    for (int step = 0; step < steps; step++) {
        for (long i = 0; i < total / ranks / steps; i++)
            own += 1e-9;
        double sent = own;
        MPI_Allreduce(&sent, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
