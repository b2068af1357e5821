/* Measures how long operations take over all ranks. Prints two results for each:
 *
 *     bench: operation NAME BYTES once MICROSECONDS...       the last end minus the first start, each round
 *     bench: operation NAME BYTES loop MINIMUM MEAN MAXIMUM  a rank's own time for one round of a loop, over
 *                                                            ranks, as Intel's and OSU's benchmarks count
 *
 * For `once`, all ranks sleep until the same instant, then start: after a barrier that crosses a WAN they
 * would start half a round trip apart. BYTES is the size of one rank's message or, in a reduction, of the
 * vector. PingPong and PingPing are between rank 0 and the last rank; PingPong counts as half a round
 * trip. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_DATA = 7021 };

/* No operation uses more memory than this for one buffer. */
static const size_t MOST_BUFFER_BYTES = 1u << 30;

/* Time for every rank to learn the instant and to fall asleep, in addition to the round trips. */
static const double LEAD_SECONDS = 0.01;

/* The clocks are compared again after this many seconds. */
static const double COMPARE_AGAIN_SECONDS = 5;

static int rank, ranks;
static char *out, *in;
/* For Allgatherv and Reduce_scatter. */
static int *counts, *displs;

static void pingpong(int bytes, int root)
{
    (void)root;
    int last = ranks - 1;
    if (rank == 0) {
        MPI_Send(out, bytes, MPI_BYTE, last, TAG_DATA, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, last, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == last) {
        MPI_Recv(in, bytes, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD);
    }
}

static void pingping(int bytes, int root)
{
    (void)root;
    int peer = rank == 0 ? ranks - 1 : 0;
    MPI_Request request;
    if (rank != 0 && rank != ranks - 1)
        return;
    MPI_Isend(out, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, &request);
    MPI_Recv(in, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sendrecv(int bytes, int root)
{
    (void)root;
    MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % ranks, TAG_DATA, in, bytes, MPI_BYTE,
                 (rank + ranks - 1) % ranks, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(int bytes, int root)
{
    (void)root;
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Isend(out, bytes, MPI_BYTE, right, TAG_DATA, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, left, TAG_DATA, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv(in, bytes, MPI_BYTE, left, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(in, bytes, MPI_BYTE, right, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, statuses);
}

static void allreduce(int bytes, int root)
{
    (void)root;
    MPI_Allreduce(out, in, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce(int bytes, int root)
{
    MPI_Reduce(out, in, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD);
}

static void reduce_scatter(int bytes, int root)
{
    (void)root;
    int floats = bytes / (int)sizeof(float);
    for (int i = 0; i < ranks; i++)
        counts[i] = floats / ranks + (i < floats % ranks);
    MPI_Reduce_scatter(out, in, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(int bytes, int root)
{
    (void)root;
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgatherv(int bytes, int root)
{
    (void)root;
    for (int i = 0; i < ranks; i++) {
        counts[i] = bytes;
        displs[i] = i * bytes;
    }
    MPI_Allgatherv(out, bytes, MPI_BYTE, in, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes, int root)
{
    (void)root;
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void bcast(int bytes, int root) { MPI_Bcast(out, bytes, MPI_BYTE, root, MPI_COMM_WORLD); }

static void gather(int bytes, int root)
{
    MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void scatter(int bytes, int root)
{
    MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void barrier(int bytes, int root)
{
    (void)bytes;
    (void)root;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The length of a buffer: one message, or one for each rank. */
enum extent { ONE, ALL_RANKS };

/* The ranks that take part. */
enum ranks_that { EVERY_RANK, TWO_RANKS };

static const struct operation {
    const char *name;
    void (*run)(int bytes, int root);
    enum extent out, in;
    enum ranks_that take_part;
    /* Divides the measured time: 2 gives half a round trip. */
    double parts;
} OPERATIONS[] = {
    {"pingpong", pingpong, ONE, ONE, TWO_RANKS, 2},
    {"pingping", pingping, ONE, ONE, TWO_RANKS, 1},
    {"sendrecv", sendrecv, ONE, ONE, EVERY_RANK, 1},
    {"exchange", exchange, ONE, ONE, EVERY_RANK, 1},
    {"allreduce", allreduce, ONE, ONE, EVERY_RANK, 1},
    {"reduce", reduce, ONE, ONE, EVERY_RANK, 1},
    {"reduce_scatter", reduce_scatter, ONE, ONE, EVERY_RANK, 1},
    {"allgather", allgather, ONE, ALL_RANKS, EVERY_RANK, 1},
    {"allgatherv", allgatherv, ONE, ALL_RANKS, EVERY_RANK, 1},
    {"alltoall", alltoall, ALL_RANKS, ALL_RANKS, EVERY_RANK, 1},
    {"bcast", bcast, ONE, ONE, EVERY_RANK, 1},
    {"gather", gather, ONE, ALL_RANKS, EVERY_RANK, 1},
    {"scatter", scatter, ALL_RANKS, ONE, EVERY_RANK, 1},
    {"barrier", barrier, ONE, ONE, EVERY_RANK, 1},
};

static const struct operation *operation_named(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
        if (strlen(OPERATIONS[i].name) == length && !strncmp(OPERATIONS[i].name, name, length))
            return &OPERATIONS[i];
    return NULL;
}

/* Runs one round. Returns the seconds from the first start to the last end, at rank 0 only. */
static double once(const struct operation *operation, int bytes, double round_trip)
{
    double times[2], latest[2], at;
    at = clocks_at_first(clocks_now()) + LEAD_SECONDS + 2 * round_trip;
    MPI_Bcast(&at, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    clocks_sleep_until(at);
    /* The maximum of the negated start times gives the first start. */
    times[0] = -clocks_at_first(clocks_now());
    operation->run(bytes, 0);
    times[1] = clocks_at_first(clocks_now());
    MPI_Reduce(times, latest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return rank == 0 ? latest[1] + latest[0] : 0;
}

/* Rounds of a loop for each round that is timed individually. */
enum { LOOP_TIMES = 4 };

/* Prints the least, mean and greatest time of the ranks that take part, as Intel's benchmark counts them:
 * each rank's own time in the operation, with a fixed root. After each collective there is a barrier, which
 * is not timed. */
static void loop(const struct operation *operation, int bytes, int rounds)
{
    int every = operation->take_part == EVERY_RANK;
    int takes_part = every || rank == 0 || rank == ranks - 1;
    double own = 0, least, most, sum;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < rounds; i++) {
        double start = clocks_now();
        operation->run(bytes, 0);
        own += clocks_now() - start;
        if (every)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    own = own / rounds / operation->parts;
    double at_least = takes_part ? own : 1e9, at_most = takes_part ? own : 0;
    MPI_Reduce(&at_least, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&at_most, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&at_most, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("bench: operation %s %d loop %.3f %.3f %.3f\n", operation->name, bytes, least * 1e6,
               sum / (every ? ranks : 2) * 1e6, most * 1e6);
}

static void measure(const struct bench_plan *plan, const struct operation *operation, int bytes)
{
    static double compared = -1e9, round_trip;
    double seconds;
    int is_late = clocks_now() > compared + COMPARE_AGAIN_SECONDS;
    MPI_Bcast(&is_late, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (is_late) {
        round_trip = clocks_compare();
        compared = clocks_now();
    }
    /* The first round is not measured: it makes connections. The second tells how long a round takes. */
    operation->run(bytes, 0);
    seconds = once(operation, bytes, round_trip);
    int rounds = bench_rounds(plan, (seconds + LEAD_SECONDS + 4 * round_trip) * 2);
    MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double *times = malloc((size_t)rounds * sizeof *times);
    if (!times)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < rounds; i++)
        times[i] = once(operation, bytes, round_trip);
    if (rank == 0) {
        printf("bench: operation %s %d once", operation->name, bytes);
        for (int i = 0; i < rounds; i++)
            printf(" %.3f", times[i] / operation->parts * 1e6);
        printf("\n");
    }
    free(times);
    /* Rounds of a loop cost a barrier in place of the lead time. */
    struct bench_plan of_loop = *plan;
    of_loop.count *= LOOP_TIMES;
    rounds = bench_rounds(&of_loop, seconds + round_trip);
    MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    loop(operation, bytes, rounds);
    if (rank == 0)
        fflush(stdout);
}

/* Returns 1, and rank 0 prints a line, if a buffer would be too large. */
static int buffers_make(const struct operation *operation, size_t bytes)
{
    size_t out_bytes = (operation->out == ALL_RANKS ? (size_t)ranks : 1) * bytes;
    size_t in_bytes = (operation->in == ALL_RANKS ? (size_t)ranks : 1) * bytes;
    if (out_bytes > MOST_BUFFER_BYTES || in_bytes > MOST_BUFFER_BYTES) {
        if (rank == 0)
            printf("bench: skipped %s %zu needs more than 1 GB for a buffer of each rank\n", operation->name,
                   bytes);
        return 1;
    }
    out = calloc(out_bytes + 1, 1);
    in = calloc(in_bytes + 1, 1);
    if (!out || !in) {
        fprintf(stderr, "bench: no memory for %s of %zu bytes\n", operation->name, bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return 0;
}

int bench_operations(const struct bench_plan *plan)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    counts = calloc((size_t)ranks, sizeof *counts);
    displs = calloc((size_t)ranks, sizeof *displs);
    if (!counts || !displs)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (const char *name = plan->operations; *name;) {
        size_t length = strcspn(name, ",");
        const struct operation *operation = operation_named(name, length);
        if (!operation) {
            if (rank == 0)
                fprintf(stderr, "bench: there is no operation %.*s\n", (int)length, name);
            MPI_Abort(MPI_COMM_WORLD, 2);
            return 2;
        }
        for (int i = 0; i < plan->n_sizes; i++) {
            if (buffers_make(operation, plan->sizes[i]))
                continue;
            measure(plan, operation, (int)plan->sizes[i]);
            free(out);
            free(in);
            if (operation->run == barrier)
                break;
        }
        name += length + (name[length] == ',');
    }
    free(counts);
    free(displs);
    return 0;
}
