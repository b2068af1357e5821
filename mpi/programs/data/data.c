/* Checks that what is received is what was sent: from every memory layout to every other, elements of 1 to 32
 * bytes, messages of 1 B to 32 MB, between all ranks of the job, with each way to send and to receive.
 * layout.h explains what is compared.
 *
 * data [--seed S] [--random N | --seconds T] [--part product|large|together|random]
 *      [--calls N] [--block-bytes B] [--without NAME,...]
 *   With --seconds all parts run in turns until the time is over. Exit status 1 if any byte, count or status
 *   is wrong. */
#include "exchange.h"
#include "left_out.h"
#include "together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *left_out = "";

struct options {
    long random, calls;
    struct together together;
    double seconds;
    const char *part;
};

static struct options options_read(int argc, char **argv)
{
    struct options options = {.random = 20000, .calls = 600, .together = {1, 1 << 20}, .part = ""};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--seed") && *value)
            options.together.seed = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--random") && *value)
            options.random = atol(value);
        else if (!strcmp(argv[i], "--calls") && *value)
            options.calls = atol(value);
        else if (!strcmp(argv[i], "--block-bytes") && *value)
            options.together.most_bytes = atoi(value);
        else if (!strcmp(argv[i], "--seconds") && *value)
            options.seconds = atof(value);
        else if (!strcmp(argv[i], "--part") && *value)
            options.part = value;
        else if (!strcmp(argv[i], "--without") && *value)
            left_out = value;
        else {
            fprintf(stderr, "usage: data [--seed S] [--random N] [--calls N] [--block-bytes B] [--seconds T] "
                            "[--part product|large|together|random]\n            [--without NAME,...]\n");
            exit(2);
        }
    }
    return options;
}

struct total {
    long exchanges, calls, wrong;
};

/* After this many wrong cases, there is no more to learn. */
#define ENOUGH_WRONG 20

static int is_enough(const struct total *total)
{
    long all = 0;
    MPI_Allreduce(&total->wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all >= ENOUGH_WRONG;
}

static void exchange_all(const struct options *options, enum part part, long count, struct total *total)
{
    for (long done = 0; done < count && !is_enough(total);) {
        long together = exchange_run(part, options->together.seed, done, count - done, &total->wrong);
        done += together;
        total->exchanges += together;
    }
}

/* Runs cases of each part in turn, until the time is over. */
static void until(const struct options *options, struct total *total)
{
    static const long shares[PART_COUNT] = {[PART_PRODUCT] = 128, [PART_LARGE] = 1, [PART_RANDOM] = 256};
    long next[PART_COUNT] = {0};
    for (double began = MPI_Wtime(); !is_enough(total);) {
        int goes_on = MPI_Wtime() - began < options->seconds;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!goes_on)
            break;
        for (enum part part = 0; part < PART_COUNT; part++)
            for (long end = next[part] + shares[part];
                 next[part] < end && next[part] < exchange_cases(part);) {
                long most = end < exchange_cases(part) ? end : exchange_cases(part);
                long together =
                    exchange_run(part, options->together.seed, next[part], most - next[part], &total->wrong);
                next[part] += together;
                total->exchanges += together;
            }
        for (int i = 0; i < 12; i++)
            total->wrong += together_run(&options->together, total->calls++);
    }
}

static int is_part(const struct options *options, const char *part)
{
    return !*options->part || !strcmp(options->part, part);
}

static void once(const struct options *options, struct total *total)
{
    if (is_part(options, "product"))
        exchange_all(options, PART_PRODUCT, exchange_cases(PART_PRODUCT), total);
    if (is_part(options, "large"))
        exchange_all(options, PART_LARGE, exchange_cases(PART_LARGE), total);
    for (; is_part(options, "together") && total->calls < options->calls && !is_enough(total); total->calls++)
        total->wrong += together_run(&options->together, total->calls);
    if (is_part(options, "random"))
        exchange_all(options, PART_RANDOM, options->random, total);
}

#ifdef CAUSEWAY_DATA_LIBRARY
/* loader/loader.c calls this. */
#define main __attribute__((visibility("default"))) causeway_data
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct options options = options_read(argc, argv);
    struct total total = {0};
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    words_begin(rank);
    exchange_begin();
    double began = MPI_Wtime();
    if (options.seconds > 0)
        until(&options, &total);
    else
        once(&options, &total);
    long wrong = 0;
    MPI_Reduce(&total.wrong, &wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Bcast(&wrong, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("data: %d ranks, seed %llu, %d kinds of elements, %ld exchanges and %ld calls of all ranks in "
               "%.0f s: %ld wrong%s\n",
               ranks, (unsigned long long)options.together.seed, words_elements(), total.exchanges,
               total.calls, MPI_Wtime() - began, wrong, wrong ? "" : ", all right");
    exchange_end();
    MPI_Finalize();
    return wrong != 0;
}
