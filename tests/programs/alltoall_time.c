/* How long MPI_Alltoall takes, over all ranks: from the last start to the last end, as CSV.
 *
 *     alltoall_time FILE.csv BYTES_PER_PAIR COUNT
 *
 * Columns: size_bytes,iteration,seconds. All ranks sleep until one instant of the clock they share, then
 * start: a barrier across a WAN would let them go half a round trip apart. One round before the clock counts,
 * its contents checked. */
#define _GNU_SOURCE
#include "clock.h"
#include "pattern.h"
#include <mpi.h>
#include <stdlib.h>

/* Longer than any rank needs to hear of the instant, on a machine whose ranks take turns on few cores. */
static const double LEAD_SECONDS = 0.1;

static int check_contents(unsigned char *out, unsigned char *in, size_t size, int rank, int ranks)
{
    int wrong = 0;
    for (int to = 0; to < ranks; to++)
        pattern_fill(out + to * size, size, pattern_seed(rank, to, size, 0));
    MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        wrong |= pattern_check(in + from * size, size, pattern_seed(from, rank, size, 0), "alltoall_time",
                               rank, from);
    return wrong;
}

/* Returns the seconds from the last start to the last end. They are the same at every rank. */
static double timed(unsigned char *out, unsigned char *in, size_t size)
{
    double own[2], last[2];
    MPI_Barrier(MPI_COMM_WORLD);
    double at = clock_now(CLOCK_MONOTONIC) + LEAD_SECONDS;
    MPI_Bcast(&at, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    clock_sleep_until(at);
    own[0] = clock_now(CLOCK_MONOTONIC);
    MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
    own[1] = clock_now(CLOCK_MONOTONIC);
    MPI_Allreduce(own, last, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last[1] - last[0];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, wrong, any = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    int count = argc > 3 ? atoi(argv[3]) : 0;
    if (size < 1 || size > 1u << 28 || count < 1) {
        if (rank == 0)
            fprintf(stderr, "usage: mpirun -n RANKS alltoall_time FILE.csv BYTES_PER_PAIR COUNT\n");
        MPI_Finalize();
        return 2;
    }
    unsigned char *out = malloc(size * (size_t)ranks), *in = malloc(size * (size_t)ranks);
    FILE *csv = rank == 0 ? fopen(argv[1], "w") : NULL;
    if (!out || !in || (rank == 0 && !csv)) {
        perror("alltoall_time: memory or output file");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (csv)
        fprintf(csv, "size_bytes,iteration,seconds\n");
    wrong = check_contents(out, in, size, rank, ranks);
    for (int i = 0; i < count; i++) {
        double seconds = timed(out, in, size);
        if (csv)
            fprintf(csv, "%zu,%d,%.6f\n", size, i, seconds);
    }
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (csv && fclose(csv) != 0)
        any = 1;
    if (rank == 0)
        printf("alltoall_time: %d ranks, %zu bytes per pair, %s\n", ranks, size, any ? "WRONG" : "all right");
    free(out);
    free(in);
    MPI_Finalize();
    return any;
}
