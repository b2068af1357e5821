/* How long collectives take, over all ranks: from the last start to the last end, as CSV.
 *
 *     collective_time FILE.csv COUNT OPERATION,... BYTES,... [RANKS_OF_FIRST_SITE]
 *
 * Columns: operation,size_bytes,iteration,seconds. All ranks sleep until one instant of the clock they share,
 * then start: a barrier across a WAN would let them go half a round trip apart. BYTES are one rank's part; of
 * bcast, reduce, allreduce and scan the vector. With RANKS_OF_FIRST_SITE the ranks of two sites, of which the
 * first has so many, take turns in the communicator's order.
 * A row whose iteration is `loop`, up to 1 MB, has what the loops of OSU's and Intel's benchmarks report: the
 * mean, over all ranks and COUNT rounds (three above 64 kB), of a rank's own time, a barrier after each
 * round. */
#define _GNU_SOURCE
#include "clock.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any rank needs to hear of the instant, on a machine whose ranks take turns on few cores. */
static const double LEAD_SECONDS = 0.03;

static MPI_Comm comm = MPI_COMM_NULL;
static int rank, ranks;
static char *out, *in;

static void run(const char *operation, int bytes)
{
    int doubles = bytes / 8;
    MPI_Request request = MPI_REQUEST_NULL;
    if (!strcmp(operation, "barrier"))
        MPI_Barrier(comm);
    else if (!strcmp(operation, "bcast"))
        MPI_Bcast(out, bytes, MPI_BYTE, 0, comm);
    else if (!strcmp(operation, "reduce"))
        MPI_Reduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, 0, comm);
    else if (!strcmp(operation, "allreduce"))
        MPI_Allreduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, comm);
    else if (!strcmp(operation, "reduce_scatter"))
        MPI_Reduce_scatter_block(out, in, doubles, MPI_DOUBLE, MPI_SUM, comm);
    else if (!strcmp(operation, "gather"))
        MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm);
    else if (!strcmp(operation, "scatter"))
        MPI_Scatter(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, 0, comm);
    else if (!strcmp(operation, "allgather"))
        MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
    else if (!strcmp(operation, "alltoall"))
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
    else if (!strcmp(operation, "scan"))
        MPI_Scan(out, in, doubles, MPI_DOUBLE, MPI_SUM, comm);
    else if (!strcmp(operation, "ibcast"))
        MPI_Ibcast(out, bytes, MPI_BYTE, 0, comm, &request);
    else if (!strcmp(operation, "iallreduce"))
        MPI_Iallreduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, comm, &request);
    else if (!strcmp(operation, "iallgather"))
        MPI_Iallgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, &request);
    else if (!strcmp(operation, "ialltoall"))
        MPI_Ialltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, &request);
    else {
        fprintf(stderr, "collective_time: no such operation: %s\n", operation);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Returns the seconds from the last start to the last end. They are the same at every rank. */
static double timed(const char *operation, int bytes)
{
    double own[2], last[2];
    MPI_Barrier(MPI_COMM_WORLD);
    double at = clock_now(CLOCK_MONOTONIC) + LEAD_SECONDS;
    MPI_Bcast(&at, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    clock_sleep_until(at);
    own[0] = clock_now(CLOCK_MONOTONIC);
    run(operation, bytes);
    own[1] = clock_now(CLOCK_MONOTONIC);
    MPI_Allreduce(own, last, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last[1] - last[0];
}

/* Counts as the benchmarks do that users know. The result is the same at every rank. */
static double looped(const char *operation, int bytes, int count)
{
    double own = 0, sum;
    MPI_Barrier(comm);
    for (int i = 0; i < count; i++) {
        double start = clock_now(CLOCK_MONOTONIC);
        run(operation, bytes);
        own += clock_now(CLOCK_MONOTONIC) - start;
        MPI_Barrier(comm);
    }
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    return sum / count / ranks;
}

/* Places the ranks of the two sites in turn, as long as both have some. */
static int turn(int world_rank, int first, int all)
{
    int second = all - first, fewer = first < second ? first : second;
    int index = world_rank < first ? world_rank : world_rank - first;
    return index < fewer ? 2 * index + (world_rank >= first) : fewer + index;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int count = argc > 4 ? atoi(argv[2]) : 0, most = 0;
    for (const char *at = argc > 4 ? argv[4] : NULL; at && *at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        most = atoi(at) > most ? atoi(at) : most;
    if (count < 1 || most < 1 || most > 1 << 28) {
        if (rank == 0)
            fprintf(stderr, "usage: mpirun -n RANKS collective_time FILE.csv COUNT OPERATION,... BYTES,... "
                            "[RANKS_OF_FIRST_SITE]\n");
        MPI_Finalize();
        return 2;
    }
    MPI_Comm_split(MPI_COMM_WORLD, 0, argc > 5 ? turn(rank, atoi(argv[5]), ranks) : rank, &comm);
    /* A communicator's first collective comes first: non-blocking ones are improved only after it. */
    MPI_Barrier(comm);
    out = calloc((size_t)most * (size_t)ranks, 1);
    in = calloc((size_t)most * (size_t)ranks, 1);
    FILE *csv = rank == 0 ? fopen(argv[1], "w") : NULL;
    if (!out || !in || (rank == 0 && !csv)) {
        perror("collective_time: memory or output file");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (csv)
        fprintf(csv, "operation,size_bytes,iteration,seconds\n");
    char *operations = argv[3], *place = NULL;
    for (char *operation = strtok_r(operations, ",", &place); operation;
         operation = strtok_r(NULL, ",", &place))
        for (const char *at = argv[4]; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
            int bytes = atoi(at);
            /* One round goes before the clock counts: it makes connections, and the hierarchy of the
             * communicator. */
            run(operation, bytes);
            for (int i = 0; i < count; i++) {
                double seconds = timed(operation, bytes);
                if (csv)
                    fprintf(csv, "%s,%d,%d,%.6f\n", operation, bytes, i, seconds);
            }
            double seconds =
                bytes <= 1 << 20 ? looped(operation, bytes, bytes > 65536 && count > 3 ? 3 : count) : 0;
            if (csv && seconds > 0)
                fprintf(csv, "%s,%d,loop,%.6f\n", operation, bytes, seconds);
            if (!strcmp(operation, "barrier"))
                break;
        }
    int failed = csv && fclose(csv) != 0;
    free(out);
    free(in);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return failed;
}
