/* The MPI programs of `causeway bench`. Rank 0 prints lines that begin with `bench: `. */
#ifndef CAUSEWAY_BENCH_H
#define CAUSEWAY_BENCH_H

#include <mpi.h>
#include <stddef.h>

enum { BENCH_MOST_SIZES = 64 };

/* The options of the command line. */
struct bench_plan {
    size_t sizes[BENCH_MOST_SIZES];
    int n_sizes;
    /* Measured rounds of each size, at most. */
    int count;
    /* Fewer rounds are measured if they would take more than this many seconds, but never fewer than five. */
    double seconds;
    /* Pause before each round. */
    int idle_milliseconds;
    /* Names of operations, separated by commas. */
    const char *operations;
    /* Whether the first and the last rank each stay on a core of their own. */
    int own_cores;
};

/* Every rank calls these. They return 0, or 1 if wrong data arrived. */
int bench_pingpong(const struct bench_plan *plan);
int bench_operations(const struct bench_plan *plan);

/* Returns how many rounds to measure if each takes `round_seconds`. */
int bench_rounds(const struct bench_plan *plan, double round_seconds);

/* The time of this host's monotonic clock in seconds. */
double clocks_now(void);
/* Measures the offset of each rank's clock from rank 0's. Every rank calls it. Returns the longest round
 * trip. */
double clocks_compare(void);
/* Converts a time of this rank's clock to rank 0's clock. */
double clocks_at_first(double own);
/* Sleeps until an instant of rank 0's clock. */
void clocks_sleep_until(double at_first);

/* Waits for a request, sleeping between tests: ranks that busy-wait would keep those that measure from
 * running. */
void bench_wait_asleep(MPI_Request *request);

#endif
