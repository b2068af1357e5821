/* One-way times between rank 0 and the last rank as CSV: half of each measured round trip, every one of them.
 *
 *     pingpong FILE.csv [--most BYTES | --sizes BYTES,BYTES,...] [--count N] [--warm-up N]
 *         [--idle MILLISECONDS [--slot I/N]] [--connect-all]
 *
 * Columns: size_bytes,iteration,one_way_us. --idle waits that long before each message, which shows what an
 * idle connection has forgotten; --slot lets N such programs run at once, each in its own part of the pauses
 * of the others. --connect-all makes every rank connect to every other first; ranks that do not measure sleep
 * meanwhile. The first and last round of each size are checked byte by byte, outside the clock. */
#define _DEFAULT_SOURCE
#include "pattern.h"
#include <mpi.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Without --sizes, half as many rounds do for larger sizes: these take a tenth of a second and more each way
 * at 1 Gbit/s. */
static const size_t LARGE_BYTES = 8u << 20;
/* Rounds before the clock counts, without --warm-up: connections are made at the first message. */
static const int WARM_UP = 3;
/* With --slot, messages come once in a period that is longer than the pause by a twentieth of it: of 5 s that
 * is 250 ms, in which the round trip of 4 MB fits. */
static const long long PERIOD_MARGIN = 20;
/* How often a rank that has nothing to do looks whether it is over: it must not take the cores of those that
 * measure. */
static const useconds_t LOOK_SELDOM_US = 100000;
/* As above, while nothing is measured. */
static const useconds_t LOOK_SOON_US = 1000;

enum { MOST_SIZES = 32, TAG_DATA, TAG_CONNECT, TAG_PAIR, TAG_OVER };

struct plan {
    const char *file;
    size_t sizes[MOST_SIZES];
    int n_sizes;
    size_t most;
    int count;
    int warm_up;
    int all_counts_alike;
    int idle_milliseconds;
    int slot, slots;
    int connect_all;
};

static int sizes_read(struct plan *plan, const char *text)
{
    char *end;
    plan->n_sizes = 0;
    plan->all_counts_alike = 1;
    do {
        size_t size = strtoul(text, &end, 10);
        if (plan->n_sizes == MOST_SIZES || end == text || size < 1 || size > 1u << 30 ||
            (*end && *end != ','))
            return 1;
        plan->sizes[plan->n_sizes++] = size;
        text = end + 1;
    } while (*end);
    return 0;
}

static int plan_read(int argc, char **argv, struct plan *plan)
{
    size_t most = 64u << 20;
    int wrong = 0;
    *plan = (struct plan){.count = 20, .warm_up = WARM_UP};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--most") && i + 1 < argc)
            most = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--sizes") && i + 1 < argc)
            wrong |= sizes_read(plan, argv[++i]);
        else if (!strcmp(argv[i], "--count") && i + 1 < argc)
            plan->count = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--warm-up") && i + 1 < argc)
            plan->warm_up = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--idle") && i + 1 < argc)
            plan->idle_milliseconds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--slot") && i + 1 < argc)
            wrong |= sscanf(argv[++i], "%d/%d", &plan->slot, &plan->slots) != 2 || plan->slot < 0 ||
                     plan->slot >= plan->slots;
        else if (!strcmp(argv[i], "--connect-all"))
            plan->connect_all = 1;
        else if (!plan->file)
            plan->file = argv[i];
        else
            return 1;
    }
    if (!plan->n_sizes)
        for (size_t size = 1; size <= most && plan->n_sizes < MOST_SIZES; size *= 4)
            plan->sizes[plan->n_sizes++] = size;
    for (int i = 0; i < plan->n_sizes; i++)
        if (plan->sizes[i] > plan->most)
            plan->most = plan->sizes[i];
    return wrong || !plan->file || plan->count < 1 || plan->warm_up < 0 || !plan->n_sizes;
}

/* Returns the round trip in seconds at rank 0. */
static double round_trip(unsigned char *out, unsigned char *in, size_t size, int rank, int peer)
{
    double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Send(out, (int)size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
        MPI_Recv(in, (int)size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, (int)size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, (int)size, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

/* Rank 0 says for how long all pause, so that the clocks of the hosts need not agree. Behind the barrier rank
 * 0 is the later one: its peer waits for the message by the time that is sent. */
static void pause_together(const struct plan *plan, MPI_Comm pair)
{
    long long pause_us = plan->idle_milliseconds * 1000ll;
    if (plan->slots) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        long long period_us = pause_us + pause_us / PERIOD_MARGIN,
                  own_us = period_us * plan->slot / plan->slots;
        long long earliest_us = now.tv_sec * 1000000ll + now.tv_nsec / 1000 + pause_us;
        pause_us += period_us - (earliest_us - own_us) % period_us;
    }
    MPI_Bcast(&pause_us, 1, MPI_LONG_LONG, 0, pair);
    MPI_Barrier(pair);
    struct timespec length = {.tv_sec = pause_us / 1000000, .tv_nsec = pause_us % 1000000 * 1000};
    nanosleep(&length, NULL);
}

static int measure(FILE *csv, const struct plan *plan, unsigned char *out, unsigned char *in, size_t size,
                   int rank, int peer, MPI_Comm pair)
{
    int few = !plan->all_counts_alike && size > LARGE_BYTES, wrong = 0;
    int count = few ? (plan->count + 1) / 2 : plan->count;
    pattern_fill(out, size, pattern_seed(rank, peer, size, 0));
    for (int i = -plan->warm_up; i < count; i++) {
        if (plan->idle_milliseconds && i >= 0)
            pause_together(plan, pair);
        double seconds = round_trip(out, in, size, rank, peer);
        if (i == -plan->warm_up || i == count - 1)
            wrong |= pattern_check(in, size, pattern_seed(peer, rank, size, 0), "pingpong", rank, peer);
        if (csv && i >= 0)
            fprintf(csv, "%zu,%d,%.3f\n", size, i, seconds / 2 * 1e6);
    }
    return wrong;
}

/* Ranks sleep in between. On few cores, ranks that busy-wait in a blocking call keep those they wait for from
 * running. */
static void wait_asleep(MPI_Request *requests, int count, useconds_t look_every_us)
{
    for (int i = 0; i < count; i++) {
        int done = 0;
        for (MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE); !done;
             MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE))
            usleep(look_every_us);
    }
}

/* Every pair exchanges a message, so that every connection there can be is there. */
static void connect_all(int rank, int ranks)
{
    MPI_Request *requests = malloc(2 * (size_t)ranks * sizeof *requests);
    int *in = calloc((size_t)ranks, sizeof *in), count = 0;
    if (!requests || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 1; i < ranks; i++) {
        int peer = (rank + i) % ranks;
        MPI_Irecv(&in[peer], 1, MPI_INT, peer, TAG_CONNECT, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(&rank, 1, MPI_INT, peer, TAG_CONNECT, MPI_COMM_WORLD, &requests[count++]);
    }
    wait_asleep(requests, count, LOOK_SOON_US);
    free(requests);
    free(in);
}

/* Makes a communicator of the two ranks that measure. They alone call it. */
static MPI_Comm pair_of(int ranks)
{
    int both[2] = {0, ranks - 1};
    MPI_Group all, two;
    MPI_Comm pair;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, both, &two);
    MPI_Comm_create_group(MPI_COMM_WORLD, two, TAG_PAIR, &pair);
    MPI_Group_free(&all);
    MPI_Group_free(&two);
    return pair;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct plan plan;
    if (plan_read(argc, argv, &plan) || ranks < 2) {
        if (rank == 0)
            fprintf(
                stderr,
                "usage: mpirun -n 2 pingpong FILE.csv [--most BYTES | --sizes BYTES,BYTES,...] [--count N] "
                "[--warm-up N] [--idle MILLISECONDS [--slot I/N]] [--connect-all]\n");
        MPI_Finalize();
        return 2;
    }
    unsigned char *out = malloc(plan.most), *in = malloc(plan.most);
    FILE *csv = rank == 0 ? fopen(plan.file, "w") : NULL;
    if (!out || !in || (rank == 0 && !csv)) {
        perror("pingpong: memory or output file");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (csv)
        fprintf(csv, "size_bytes,iteration,one_way_us\n");
    if (plan.connect_all)
        connect_all(rank, ranks);
    MPI_Request over;
    if (rank == 0 || rank == ranks - 1) {
        MPI_Comm pair = pair_of(ranks);
        for (int i = 0; i < plan.n_sizes; i++)
            wrong |= measure(csv, &plan, out, in, plan.sizes[i], rank, rank == 0 ? ranks - 1 : 0, pair);
        MPI_Comm_free(&pair);
        for (int other = 1; rank == 0 && other < ranks - 1; other++)
            MPI_Send(NULL, 0, MPI_BYTE, other, TAG_OVER, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(NULL, 0, MPI_BYTE, 0, TAG_OVER, MPI_COMM_WORLD, &over);
        wait_asleep(&over, 1, LOOK_SELDOM_US);
    }

    int any = 0;
    MPI_Iallreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &over);
    wait_asleep(&over, 1, LOOK_SOON_US);
    if (csv && fclose(csv) != 0)
        any = 1;
    if (rank == 0)
        printf("pingpong: rank 0 and rank %d, 1 to %zu bytes, %s\n", ranks - 1, plan.most,
               any ? "WRONG" : "all right");
    free(out);
    free(in);
    MPI_Finalize();
    return any;
}
