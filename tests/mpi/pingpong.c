/* One-way times between rank 0 and the last rank as CSV: half of each measured round trip, every one of them.
 *
 *     pingpong FILE.csv [--most BYTES] [--count N] [--idle MILLISECONDS]
 *
 * Columns: size_bytes,iteration,one_way_us. --idle waits that long before each message, which shows what an idle
 * connection has forgotten. The first and last round of each size are checked byte by byte, outside the clock. */
#define _DEFAULT_SOURCE
#include "pattern.h"
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

/* Sizes above this take a tenth of a second and more each way at 1 Gbit/s: half as many do. */
static const size_t LARGE_BYTES = 8u << 20;
/* Rounds before the clock counts: connections are made at the first message. */
static const int WARM_UP = 3;

struct plan {
    const char *file;
    size_t most;
    int count;
    int idle_milliseconds;
};

static int plan_read(int argc, char **argv, struct plan *plan)
{
    *plan = (struct plan){.file = NULL, .most = 64u << 20, .count = 20, .idle_milliseconds = 0};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--most") && i + 1 < argc)
            plan->most = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--count") && i + 1 < argc)
            plan->count = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--idle") && i + 1 < argc)
            plan->idle_milliseconds = atoi(argv[++i]);
        else if (!plan->file)
            plan->file = argv[i];
        else
            return 1;
    }
    return !plan->file || plan->count < 1;
}

/* Returns the round trip in seconds at rank 0. */
static double round_trip(unsigned char *out, unsigned char *in, size_t size, int rank, int peer)
{
    double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Send(out, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(in, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

static int measure(FILE *csv, const struct plan *plan, unsigned char *out, unsigned char *in, size_t size, int rank,
                   int peer)
{
    int count = size > LARGE_BYTES ? (plan->count + 1) / 2 : plan->count, wrong = 0;
    pattern_fill(out, size, pattern_seed(rank, peer, size, 0));
    for (int i = -WARM_UP; i < count; i++) {
        if (plan->idle_milliseconds && i >= 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            usleep((useconds_t)plan->idle_milliseconds * 1000);
        }
        double seconds = round_trip(out, in, size, rank, peer);
        if (i == -WARM_UP || i == count - 1)
            wrong |= pattern_check(in, size, pattern_seed(peer, rank, size, 0), "pingpong", rank, peer);
        if (csv && i >= 0)
            fprintf(csv, "%zu,%d,%.3f\n", size, i, seconds / 2 * 1e6);
    }
    return wrong;
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
            fprintf(stderr, "usage: mpirun -n 2 pingpong FILE.csv [--most BYTES] [--count N] [--idle MILLISECONDS]\n");
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
    if (rank == 0 || rank == ranks - 1)
        for (size_t size = 1; size <= plan.most; size *= 4)
            wrong |= measure(csv, &plan, out, in, size, rank, rank == 0 ? ranks - 1 : 0);

    int any = 0;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (csv && fclose(csv) != 0)
        any = 1;
    if (rank == 0)
        printf("pingpong: rank 0 and rank %d, 1 to %zu bytes, %s\n", ranks - 1, plan.most, any ? "WRONG" : "all right");
    free(out);
    free(in);
    MPI_Finalize();
    return any;
}
