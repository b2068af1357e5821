/* One clock for all ranks: the nodes of a lab are namespaces of one kernel and share it. Real hosts do
 * not. */
#ifndef CAUSEWAY_TEST_CLOCK_H
#define CAUSEWAY_TEST_CLOCK_H

#include <time.h>

static inline double clock_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void clock_sleep_until(double seconds)
{
    struct timespec end = {.tv_sec = (time_t)seconds};
    end.tv_nsec = (long)((seconds - (double)end.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
        ;
}

#endif
