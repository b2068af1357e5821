/* Makes the hosts' clocks comparable: each rank's clock is compared with rank 0's, as NTP does.
 *
 * The shortest of several round trips counts; half of its asymmetry is the error. The monotonic clock is not
 * slewed between comparisons by more than 500 ppm (RFC 5905), which is 5 us in 10 ms. */
#define _GNU_SOURCE
#include "bench.h"
#include <time.h>

enum { ROUNDS = 12, TAG_CLOCK = 7001 };

/* This rank's clock minus rank 0's. */
static double ahead;

double clocks_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Rank 0 asks one rank for its time. Returns the shortest round trip, and in *ahead_of how far the other
 * clock is ahead. */
static double ask(int peer, double *ahead_of)
{
    double shortest = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double there, began = clocks_now();
        MPI_Send(&began, 1, MPI_DOUBLE, peer, TAG_CLOCK, MPI_COMM_WORLD);
        MPI_Recv(&there, 1, MPI_DOUBLE, peer, TAG_CLOCK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double took = clocks_now() - began;
        if (took < shortest) {
            shortest = took;
            *ahead_of = there - (began + took / 2);
        }
    }
    return shortest;
}

static void answer(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        double told;
        MPI_Recv(&told, 1, MPI_DOUBLE, 0, TAG_CLOCK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        told = clocks_now();
        MPI_Send(&told, 1, MPI_DOUBLE, 0, TAG_CLOCK, MPI_COMM_WORLD);
    }
}

double clocks_compare(void)
{
    int rank, ranks;
    double longest = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int peer = 1; rank == 0 && peer < ranks; peer++) {
        double ahead_of = 0, took = ask(peer, &ahead_of);
        longest = took > longest ? took : longest;
        MPI_Send(&ahead_of, 1, MPI_DOUBLE, peer, TAG_CLOCK, MPI_COMM_WORLD);
    }
    if (rank != 0) {
        answer();
        MPI_Recv(&ahead, 1, MPI_DOUBLE, 0, TAG_CLOCK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(&longest, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return longest;
}

double clocks_at_first(double own) { return own - ahead; }

void clocks_sleep_until(double at_first)
{
    double own = at_first + ahead;
    struct timespec end = {.tv_sec = (time_t)own};
    end.tv_nsec = (long)((own - (double)end.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
        ;
}
