/* A stream that never pauses: rank 0 sends to the last rank for some seconds, which writes what has come as
 * CSV.
 *
 *     bulk FILE.csv SECONDS
 *
 * Columns: seconds,bytes - the clock that all nodes of a lab share, which nobody sets, and the sum so far; a
 * row about every 50 ms. */
#define _GNU_SOURCE
#include "clock.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Several messages are in flight, so that no handshake of one leaves the link empty. */
enum { MESSAGE_BYTES = 1 << 20, IN_FLIGHT = 8 };
static const double ROW_EVERY_SECONDS = 0.05;

/* The first byte of a message says whether it is one of the last, one for each slot of the receiver. */
static void send_all(unsigned char (*data)[MESSAGE_BYTES], int to, double seconds)
{
    MPI_Request sending[IN_FLIGHT];
    double end = clock_now(CLOCK_MONOTONIC) + seconds;
    int last = 0;
    for (int i = 0; i < IN_FLIGHT; i++)
        sending[i] = MPI_REQUEST_NULL;
    for (int i = 0; last < IN_FLIGHT; i = (i + 1) % IN_FLIGHT) {
        MPI_Wait(&sending[i], MPI_STATUS_IGNORE);
        data[i][0] = clock_now(CLOCK_MONOTONIC) >= end;
        last += data[i][0];
        MPI_Isend(data[i], MESSAGE_BYTES, MPI_BYTE, to, 0, MPI_COMM_WORLD, &sending[i]);
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        MPI_Wait(&sending[i], MPI_STATUS_IGNORE);
}

static void receive_all(unsigned char (*data)[MESSAGE_BYTES], FILE *csv)
{
    MPI_Request receiving[IN_FLIGHT];
    unsigned long long bytes = 0;
    double written = 0;
    int last = 0;
    for (int i = 0; i < IN_FLIGHT; i++)
        MPI_Irecv(data[i], MESSAGE_BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &receiving[i]);
    for (int i = 0; last < IN_FLIGHT; i = (i + 1) % IN_FLIGHT) {
        MPI_Wait(&receiving[i], MPI_STATUS_IGNORE);
        bytes += MESSAGE_BYTES;
        double now = clock_now(CLOCK_MONOTONIC);
        if (now - written >= ROW_EVERY_SECONDS) {
            fprintf(csv, "%.6f,%llu\n", now, bytes);
            fflush(csv);
            written = now;
        }
        if (data[i][0])
            last++;
        else
            MPI_Irecv(data[i], MESSAGE_BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &receiving[i]);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double seconds = argc > 2 ? atof(argv[2]) : 0;
    unsigned char (*data)[MESSAGE_BYTES] = calloc(IN_FLIGHT, MESSAGE_BYTES);
    FILE *csv = rank == ranks - 1 && argc > 1 ? fopen(argv[1], "w") : NULL;
    if (!data || seconds <= 0 || ranks < 2 || (rank == ranks - 1 && !csv)) {
        fprintf(stderr, "usage: mpirun -n 2 bulk FILE.csv SECONDS, where FILE.csv can be written\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (csv)
        fprintf(csv, "seconds,bytes\n");
    if (rank == 0)
        send_all(data, ranks - 1, seconds);
    else if (csv)
        receive_all(data, csv);
    if (csv && fclose(csv) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    free(data);
    MPI_Finalize();
    return 0;
}
