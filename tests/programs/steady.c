/* A ping-pong that does not pause: rank 0 and the last rank send each other one message of each size in turn
 * for some seconds, and rank 0 writes what each took as CSV, at the end. What happens to the network
 * meanwhile is seen in the rows. From one second to another all messages have one byte: these tell a
 * network nothing of how much it carries.
 *
 *     steady FILE.csv SECONDS SMALL_FROM SMALL_UNTIL [SIZE...]
 *
 * SIZE: bytes of a message, at most 16 MiB; without any, 1 B to 256 KiB.
 *
 * Columns: seconds (when the message was sent, by the clock that all nodes of a lab share, which nobody
 * sets), size_bytes, one_way_us (half of the round trip). */
#define _GNU_SOURCE
#include "clock.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const int SIZES[] = {1, 4096, 16384, 65536, 262144};
enum {
    KINDS = sizeof SIZES / sizeof *SIZES,
    MOST_KINDS = 16,
    LARGEST = 16 << 20,
    MOST_ROWS = 1000000,
    LAST = 1
};

struct row {
    double sent, one_way_us;
    int size;
};

struct plan {
    double seconds, small_from, small_until;
    int kinds, sizes[MOST_KINDS];
};

/* False where there is a size that no message has. */
static int read_sizes(struct plan *plan, int count, char **words)
{
    for (plan->kinds = 0; plan->kinds < count && plan->kinds < MOST_KINDS; plan->kinds++) {
        int size = atoi(words[plan->kinds]);
        if (size < 1 || size > LARGEST)
            return 0;
        plan->sizes[plan->kinds] = size;
    }
    for (; count < 1 && plan->kinds < KINDS; plan->kinds++)
        plan->sizes[plan->kinds] = SIZES[plan->kinds];
    return 1;
}

/* The tag of a message says whether it is the last. */
static long exchange(unsigned char *data, struct row *rows, int peer, const struct plan *plan)
{
    double start = clock_now(CLOCK_MONOTONIC);
    for (long i = 0; i < MOST_ROWS; i++) {
        struct row *row = &rows[i];
        double since = clock_now(CLOCK_MONOTONIC) - start;
        int tag = since >= plan->seconds || i == MOST_ROWS - 1 ? LAST : 0;
        row->size = since >= plan->small_from && since < plan->small_until ? 1 : plan->sizes[i % plan->kinds];
        row->sent = clock_now(CLOCK_MONOTONIC);
        MPI_Send(data, row->size, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
        MPI_Recv(data, row->size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        row->one_way_us = (clock_now(CLOCK_MONOTONIC) - row->sent) * 1e6 / 2;
        if (tag == LAST)
            return i + 1;
    }
    return MOST_ROWS;
}

static void send_back(unsigned char *data)
{
    MPI_Status status;
    do {
        int size;
        MPI_Recv(data, LARGEST, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &size);
        MPI_Send(data, size, MPI_BYTE, 0, status.MPI_TAG, MPI_COMM_WORLD);
    } while (status.MPI_TAG != LAST);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct plan plan = {0};
    if (argc > 4) {
        plan = (struct plan){
            .seconds = atof(argv[2]), .small_from = atof(argv[3]), .small_until = atof(argv[4])};
        if (!read_sizes(&plan, argc - 5, argv + 5))
            plan.seconds = 0;
    }
    unsigned char *data = calloc(1, LARGEST);
    struct row *rows = rank == 0 ? calloc(MOST_ROWS, sizeof *rows) : NULL;
    FILE *csv = rank == 0 && argc > 1 ? fopen(argv[1], "w") : NULL;
    if (!data || plan.seconds <= 0 || ranks < 2 || (rank == 0 && (!csv || !rows))) {
        fprintf(stderr, "usage: mpirun -n 2 steady FILE.csv SECONDS SMALL_FROM SMALL_UNTIL [SIZE...]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (csv) {
        fprintf(csv, "seconds,size_bytes,one_way_us\n");
        fflush(csv);
        long count = exchange(data, rows, ranks - 1, &plan);
        for (long i = 0; i < count; i++)
            fprintf(csv, "%.6f,%d,%.3f\n", rows[i].sent, rows[i].size, rows[i].one_way_us);
    } else if (rank == ranks - 1) {
        send_back(data);
    }
    if (csv && fclose(csv) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    free(rows);
    free(data);
    MPI_Finalize();
    return 0;
}
