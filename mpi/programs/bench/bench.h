/* The MPI programs of `causeway bench`. Rank 0 prints rows that begin with `bench: `. */
#ifndef CAUSEWAY_BENCH_H
#define CAUSEWAY_BENCH_H

#include <mpi.h>
#include <stddef.h>

enum { BENCH_MOST_SIZES = 64 };

/* What the command line asks for. */
struct bench_plan {
    size_t sizes[BENCH_MOST_SIZES];
    int n_sizes;
    /* Measured rounds of each size, at most. */
    int count;
    /* Fewer rounds do where this many seconds have passed, but never fewer than five. */
    double seconds;
    /* Pause before each round. */
    int idle_milliseconds;
    /* Names of operations, separated by commas. */
    const char *operations;
    /* Whether the first and the last rank keep each to a core of its own. */
    int own_cores;
};

/* Each is called by every rank; the result is 0, or 1 where data arrived wrong. */
int bench_pingpong(const struct bench_plan *plan);
int bench_operations(const struct bench_plan *plan);

/* Returns how many rounds of so many seconds each are measured. */
int bench_rounds(const struct bench_plan *plan, double round_seconds);

/* Seconds of this host's clock. It does not jump. */
double clocks_now(void);
/* Finds how far each rank's clock is from rank 0's. Every rank calls it. Returns the longest round trip. */
double clocks_compare(void);
/* Seconds of rank 0's clock for a time of this rank's. */
double clocks_at_first(double own);
/* Sleeps until an instant of rank 0's clock. */
void clocks_sleep_until(double at_first);

/* Waits for a request, asleep: ranks that busy-wait would keep those that measure from running. */
void bench_wait_asleep(MPI_Request *request);

#endif
