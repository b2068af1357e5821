/* How many rounds are measured, and how ranks that do not measure wait. */
#include "bench.h"
#include <time.h>

static const long LOOK_EVERY_NS = 2000000;

/* Rounds that a median needs, however long they take. */
static const int LEAST_ROUNDS = 5;

int bench_rounds(const struct bench_plan *plan, double round_seconds)
{
    double fitting = plan->seconds / (round_seconds > 1e-9 ? round_seconds : 1e-9);
    int least = plan->count < LEAST_ROUNDS ? plan->count : LEAST_ROUNDS;
    if (fitting >= plan->count)
        return plan->count;
    return fitting > least ? (int)fitting : least;
}

void bench_wait_asleep(MPI_Request *request)
{
    struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
    for (int done = 0;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        nanosleep(&pause, NULL);
    }
}
