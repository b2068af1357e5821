/* One-way times between rank 0 and the last rank: half of each measured round trip.
 *
 * Row: `bench: pingpong BYTES MICROSECONDS...`, one value per round. Each rank first exchanges a message with
 * each other rank, so that all are connected; then the ranks in between sleep. The first and the last message
 * of each size are checked, outside the timed sections. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Rounds that are not measured: the first message makes the connections, and the last of these rounds tells
 * how long a round takes. */
enum { WARM_UP = 3, TAG_DATA = 7011, TAG_ROUNDS, TAG_PAUSE, TAG_CONNECT };

static unsigned char byte_of(int rank, size_t size, size_t i)
{
    return (unsigned char)((size_t)rank * 101 + size * 7 + i * 13 + i / 251);
}

static void fill(unsigned char *data, int rank, size_t size)
{
    for (size_t i = 0; i < size; i++)
        data[i] = byte_of(rank, size, i);
}

static int is_wrong(const unsigned char *data, int from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] != byte_of(from, size, i)) {
            fprintf(stderr, "bench: pingpong of %zu bytes: byte %zu from rank %d is wrong\n", size, i, from);
            return 1;
        }
    return 0;
}

/* Returns the seconds at rank 0. */
static double round_trip(unsigned char *out, unsigned char *in, int size, int rank, int peer)
{
    double start = clocks_now();
    if (rank == 0) {
        MPI_Send(out, size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
        MPI_Recv(in, size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
    }
    return clocks_now() - start;
}

/* Both ranks pause for the same time; rank 0 begins when it knows that the other rank does. */
static void pause_together(const struct bench_plan *plan, int rank, int peer)
{
    struct timespec length = {.tv_sec = plan->idle_milliseconds / 1000,
                              .tv_nsec = plan->idle_milliseconds % 1000 * 1000000l};
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_PAUSE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_PAUSE, MPI_COMM_WORLD);
    nanosleep(&length, NULL);
}

static int measure(const struct bench_plan *plan, unsigned char *out, unsigned char *in, size_t size,
                   int rank, int peer)
{
    int wrong = 0, rounds;
    double seconds = 0;
    fill(out, rank, size);
    for (int i = 0; i < WARM_UP; i++)
        seconds = round_trip(out, in, (int)size, rank, peer);
    wrong |= is_wrong(in, peer, size);
    memset(in, 0, size);
    rounds = bench_rounds(plan, seconds);
    if (rank == 0)
        MPI_Send(&rounds, 1, MPI_INT, peer, TAG_ROUNDS, MPI_COMM_WORLD);
    else
        MPI_Recv(&rounds, 1, MPI_INT, 0, TAG_ROUNDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double *times = malloc((size_t)rounds * sizeof *times);
    if (!times)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < rounds; i++) {
        if (plan->idle_milliseconds)
            pause_together(plan, rank, peer);
        times[i] = round_trip(out, in, (int)size, rank, peer);
    }
    wrong |= is_wrong(in, peer, size);
    if (rank == 0) {
        printf("bench: pingpong %zu", size);
        for (int i = 0; i < rounds; i++)
            printf(" %.3f", times[i] / 2 * 1e6);
        printf("\n");
        fflush(stdout);
    }
    free(times);
    return wrong;
}

static void connect_all(int rank, int ranks)
{
    for (int i = 1; i < ranks; i++)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + i) % ranks, TAG_CONNECT, NULL, 0, MPI_BYTE,
                     (rank + ranks - i) % ranks, TAG_CONNECT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int bench_pingpong(const struct bench_plan *plan)
{
    int rank, ranks, wrong = 0, any = 0;
    size_t most = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < plan->n_sizes; i++)
        most = plan->sizes[i] > most ? plan->sizes[i] : most;
    connect_all(rank, ranks);
    if (rank == 0 || rank == ranks - 1) {
        unsigned char *out = malloc(most), *in = malloc(most);
        if (!out || !in) {
            fprintf(stderr, "bench: no memory for messages of %zu bytes\n", most);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (int i = 0; i < plan->n_sizes; i++)
            wrong |= measure(plan, out, in, plan->sizes[i], rank, rank == 0 ? ranks - 1 : 0);
        free(out);
        free(in);
    }
    MPI_Request over;
    MPI_Iallreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &over);
    bench_wait_asleep(&over);
    return any;
}
