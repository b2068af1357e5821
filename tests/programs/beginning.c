/* How long a job takes to begin: MPI_Init, then a first message from every rank to every other one, as rank 0
 * sees it.
 *
 *     beginning FILE.csv
 *
 * Columns: ranks, init_s (the longest of all ranks), all_to_all_s, finalize_s. */
#define _GNU_SOURCE
#include "clock.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Every rank has a message of eight bytes for every other one. */
static void all_to_all(int rank, int ranks)
{
    enum { BYTES = 8 };
    char *out = calloc((size_t)ranks, BYTES), *in = calloc((size_t)ranks, BYTES);
    MPI_Request *requests = calloc(2 * (size_t)ranks, sizeof *requests);
    if (!out || !in || !requests)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < ranks; i++)
        MPI_Irecv(in + i * BYTES, BYTES, MPI_BYTE, i, 0, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < ranks; i++) {
        int to = (rank + i) % ranks;
        MPI_Isend(out + to * BYTES, BYTES, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[ranks + i]);
    }
    for (int i = 0; i < 2 * ranks; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    free(requests);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    double begin = clock_now(CLOCK_MONOTONIC), longest = 0;
    MPI_Init(&argc, &argv);
    double init = clock_now(CLOCK_MONOTONIC) - begin;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double met = clock_now(CLOCK_MONOTONIC);
    all_to_all(rank, ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double exchanged = clock_now(CLOCK_MONOTONIC) - met;
    MPI_Reduce(&init, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    double done = clock_now(CLOCK_MONOTONIC);
    MPI_Finalize();
    if (rank != 0)
        return 0;
    FILE *csv = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (!csv) {
        fprintf(stderr, "usage: mpirun beginning FILE.csv, where FILE.csv can be written\n");
        return 2;
    }
    fprintf(csv, "ranks,init_s,all_to_all_s,finalize_s\n%d,%.3f,%.3f,%.3f\n", ranks, longest, exchanged,
            clock_now(CLOCK_MONOTONIC) - done);
    return fclose(csv) != 0;
}
