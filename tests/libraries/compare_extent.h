/* How long compare.c goes on, and how much memory it may need more in the end. */
#ifndef CAUSEWAY_COMPARE_EXTENT_H
#define CAUSEWAY_COMPARE_EXTENT_H

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Where the comparing ends: after so many cases, or so many seconds by rank 0's clock. */
struct extent {
    int cases, seconds;
    time_t began;
};

static struct extent extent_of(const char *text)
{
    char *unit;
    long number = strtol(text, &unit, 10);
    if (*unit == 's')
        return (struct extent){.cases = INT_MAX, .seconds = (int)number, .began = time(NULL)};
    return (struct extent){.cases = (int)number};
}

enum phase { WARMING, MEASURED, OVER };

static int phase_of(const struct extent *extent, int rank)
{
    time_t passed = time(NULL) - extent->began;
    if (!extent->seconds || rank != 0)
        return WARMING;
    return passed >= extent->seconds ? OVER : passed * 10 >= extent->seconds ? MEASURED : WARMING;
}

/* In the end a run may have so much more memory in use than after a tenth of its time. A hierarchy that is
 * not freed costs more than 4 kB with its two communicators, and a soak of minutes makes ten thousands of
 * them. */
#define MAX_GROWTH_BYTES (16 << 20)

/* Returns the memory in use, without what the allocator keeps for later. */
static int64_t resident_bytes(void)
{
    long all, resident = 0;
    malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &resident) != 2)
        fprintf(stderr, "compare: /proc/self/statm does not say how much memory is in use\n"), exit(2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

#endif
