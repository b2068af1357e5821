/* causeway_bench pingpong|operations [--sizes BYTES,...] [--count N] [--seconds S] [--idle MILLISECONDS]
 *     [--operations NAME,...] [--own-cores 0|1]
 *
 * `causeway bench` starts it through causeway-loader, or as a separate program that the user's mpicc has
 * built. The exit status is 0, 1 if wrong data arrived, 2 for wrong arguments. */
#define _GNU_SOURCE
#include "bench.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST_BYTES = 1u << 30;

static int sizes_read(struct bench_plan *plan, const char *text)
{
    char *end;
    plan->n_sizes = 0;
    do {
        size_t size = strtoul(text, &end, 10);
        if (plan->n_sizes == BENCH_MOST_SIZES || end == text || size > MOST_BYTES || (*end && *end != ','))
            return 1;
        plan->sizes[plan->n_sizes++] = size;
        text = end + 1;
    } while (*end);
    return 0;
}

static int plan_read(int argc, char **argv, struct bench_plan *plan)
{
    int wrong = 0;
    *plan = (struct bench_plan){.sizes = {1}, .n_sizes = 1, .count = 200, .seconds = 4, .operations = ""};
    for (int i = 2; i < argc; i++) {
        if (i + 1 == argc)
            return 1;
        if (!strcmp(argv[i], "--sizes"))
            wrong |= sizes_read(plan, argv[++i]);
        else if (!strcmp(argv[i], "--count"))
            plan->count = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--seconds"))
            plan->seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--idle"))
            plan->idle_milliseconds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--operations"))
            plan->operations = argv[++i];
        else if (!strcmp(argv[i], "--own-cores"))
            plan->own_cores = atoi(argv[++i]);
        else
            return 1;
    }
    return wrong || plan->count < 1 || plan->seconds < 0 || plan->idle_milliseconds < 0;
}

/* Keeps the first and the last rank each on a core of its own. The nodes of an emulated grid share the cores
 * of one host: two ranks that busy-wait on the same core would measure its time slices. */
static void stay_on_own_core(int rank, int ranks)
{
    cpu_set_t core;
    long last = sysconf(_SC_NPROCESSORS_CONF) - 1;
    if (rank != 0 && rank != ranks - 1)
        return;
    CPU_ZERO(&core);
    CPU_SET(rank == 0 || last < 1 ? 0 : (int)last, &core);
    if (sched_setaffinity(0, sizeof core, &core))
        perror("bench: keep to one core");
}

#ifdef CAUSEWAY_BENCH_LIBRARY
__attribute__((visibility("default"))) int causeway_bench(int argc, char **argv);
int causeway_bench(int argc, char **argv)
#else
int main(int argc, char **argv)
#endif
{
    MPI_Init(&argc, &argv);
    int rank, ranks, status = 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct bench_plan plan;
    int wrong = argc < 2 || ranks < 2 || plan_read(argc, argv, &plan);
    if (!wrong && plan.own_cores)
        stay_on_own_core(rank, ranks);
    if (!wrong && !strcmp(argv[1], "pingpong"))
        status = bench_pingpong(&plan);
    else if (!wrong && !strcmp(argv[1], "operations"))
        status = bench_operations(&plan);
    else if (rank == 0)
        fprintf(stderr,
                "usage: mpirun -n RANKS causeway_bench pingpong|operations [--sizes BYTES,...] [--count N] "
                "[--seconds S] [--idle MILLISECONDS] [--operations NAME,...] [--own-cores 0|1]; RANKS is at "
                "least 2\n");
    MPI_Finalize();
    return status;
}
