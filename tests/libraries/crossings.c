/* How many messages and bytes each operation, in each of its forms, sends from site to site, against what it
 * must be: no timing, no chance.
 *
 * crossings RANKS_OF_SITE...: the sizes of the sites that CAUSEWAY_COLLECTIVES_SITES gives, in the order of
 * ranks.
 * crossings slow RANKS RANKS RANKS: of three sites whose ranks follow each other, and of which
 * CAUSEWAY_COLLECTIVES_LINKS says that the way between the first and the last is slow: what each site sends
 * to each other one. */
#include "native.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct crossings {
    int64_t messages, bytes;
};

static void (*read_crossings)(struct crossings *);
static int rank, ranks, sites, site_size[64], wrong;
static struct crossings before;

/* The operation in its blocking, non-blocking and persistent form. */
enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static int form;
static MPI_Request request;

static void start(void)
{
    NATIVE(Barrier)(MPI_COMM_WORLD);
    read_crossings(&before);
}

static void expect(const char *what, int64_t messages, int64_t bytes)
{
    struct crossings now, all;
    read_crossings(&now);
    int64_t own[2] = {now.messages - before.messages, now.bytes - before.bytes};
    NATIVE(Allreduce)(own, &all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (all.messages == messages && all.bytes == bytes)
        return;
    wrong = 1;
    if (rank == 0)
        fprintf(stderr, "%s, form %d: %lld messages and %lld bytes crossed, not %lld and %lld\n", what, form,
                (long long)all.messages, (long long)all.bytes, (long long)messages, (long long)bytes);
}

static void (*read_crossings_to)(int, struct crossings *);

/* Reads what this rank has sent to each of three sites: messages, then bytes. There is a row for its own
 * site. */
static void read_pairs(int64_t pairs[18])
{
    int site = 0, ranks_before = site_size[0];
    while (rank >= ranks_before)
        ranks_before += site_size[++site];
    memset(pairs, 0, 18 * sizeof *pairs);
    for (int to = 0; to < 3; to++) {
        struct crossings now;
        read_crossings_to(to, &now);
        pairs[site * 6 + to * 2] = now.messages;
        pairs[site * 6 + to * 2 + 1] = now.bytes;
    }
}

static int64_t pairs_before[18];

static void start_pairs(void)
{
    NATIVE(Barrier)(MPI_COMM_WORLD);
    read_pairs(pairs_before);
}

/* Site i must send `bytes` to site j parts[i][j] times, in so many messages each. */
static void expect_pairs(const char *what, const int64_t parts[3][3], int64_t messages, int64_t bytes)
{
    int64_t own[18], all[18];
    read_pairs(own);
    for (int i = 0; i < 18; i++)
        own[i] -= pairs_before[i];
    NATIVE(Allreduce)(own, all, 18, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 9; i++) {
        int64_t times = parts[i / 3][i % 3];
        if (all[2 * i] == times * messages && all[2 * i + 1] == times * bytes)
            continue;
        wrong = 1;
        if (rank == 0)
            fprintf(stderr,
                    "%s: %lld messages and %lld bytes crossed from site %d to site %d, not %lld and %lld\n",
                    what, (long long)all[2 * i], (long long)all[2 * i + 1], i / 3, i % 3,
                    (long long)(times * messages), (long long)(times * bytes));
    }
}

/* Up to SMALL bytes a rank leaders carry every operation, on two sites of two ranks and more (`causeway
 * collectives explain`). */
enum { SMALL = 512, SEGMENT = 256 * 1024, PIECES = 5, LARGE = PIECES * SEGMENT };

/* Returns how many messages a large vector takes that is cut into one part for each of so many ranks, each to
 * be added up or handed out. */
static int64_t of_parts(int parts) { return (int64_t)parts * ((LARGE / parts + SEGMENT - 1) / SEGMENT); }

/* Nothing may go over the slow way, and over the others no more than must. */
static void slow_pair(char *out, char *in)
{
    /* A broadcast goes from the first site to the last by way of the second, and back likewise. In a
     * reduction the second passes on the last's part beside its own. An allreduce goes by way of the
     * second. */
    const int64_t bcast[3][3] = {{0, 1, 0}, {0, 0, 1}, {0, 0, 0}},
                  back[3][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    const int64_t middle[3][3] = {{0, 0, 0}, {1, 0, 1}, {0, 0, 0}};
    const int64_t reduce[3][3] = {{0, 0, 0}, {2, 0, 0}, {0, 1, 0}},
                  allreduce[3][3] = {{0, 1, 0}, {1, 0, 1}, {0, 1, 0}};
    start_pairs(), MPI_Bcast(out, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD), expect_pairs("bcast", bcast, 1, SMALL);
    start_pairs(), MPI_Bcast(out, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD),
        expect_pairs("large bcast", bcast, PIECES, LARGE);
    start_pairs(), MPI_Bcast(out, LARGE, MPI_BYTE, ranks - 1, MPI_COMM_WORLD),
        expect_pairs("bcast of the last", back, PIECES, LARGE);
    start_pairs(), MPI_Bcast(out, SMALL, MPI_BYTE, site_size[0], MPI_COMM_WORLD),
        expect_pairs("bcast of the middle", middle, 1, SMALL);
    start_pairs(), MPI_Reduce(out, in, SMALL, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD),
        expect_pairs("reduce", reduce, 1, SMALL);
    start_pairs(), MPI_Reduce(out, in, LARGE, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD),
        expect_pairs("large reduce", reduce, PIECES, LARGE);
    start_pairs(), MPI_Allreduce(out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD),
        expect_pairs("allreduce", allreduce, 1, SMALL);
    start_pairs(), MPI_Allreduce(out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD),
        expect_pairs("large allreduce", allreduce, of_parts(site_size[1]), LARGE);
}

static void report(void)
{
    if (rank == 0)
        printf("crossings over %d sites: %s\n", sites, wrong ? "WRONG" : "as they must be");
}

/* Returns how many pairs of ranks at different sites there are, each way. */
static int64_t pairs(void)
{
    int64_t sum = 0;
    for (int s = 0; s < sites; s++)
        sum += (int64_t)site_size[s] * (ranks - site_size[s]);
    return sum;
}

/* Open MPI sends a large message at once. The others would wait for its receiver, so they get it in
 * segments. */
#if defined(OPEN_MPI)
#define PARTS 1
#else
#define PARTS PIECES
#endif

/* Returns how many messages a segment of a large allreduce takes by several leaders: one between ranks whose
 * parts overlap. */
static int64_t of_a_segment(void)
{
    int64_t sum = 0;
    for (int s = 0; s < sites; s++)
        for (int t = 0; t < sites; t++) {
            int64_t all = site_size[s] + site_size[t], least = site_size[s], other = site_size[t];
            for (int64_t rest; other > 0; least = other, other = rest)
                rest = least % other;
            sum += s == t ? 0 : all - least;
        }
    return sum;
}

/* Several leaders carry it over two sites, or where CAUSEWAY_COLLECTIVES_RULES says so. Else each site sends
 * each part that is not its own once to whom it belongs, and each part goes from there once to each other
 * site. */
static void expect_large_allreduce(void)
{
    int64_t others = sites - 1;
    if (sites == 2 || getenv("CAUSEWAY_COLLECTIVES_RULES"))
        expect("large allreduce", of_a_segment() * PIECES, sites * others * LARGE);
    else
        expect("large allreduce", 2 * others * of_parts(ranks), 2 * others * LARGE);
}

static void finish(void)
{
    if (form == PERSISTENT)
        MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (form == PERSISTENT)
        MPI_Request_free(&request);
}

#define DO(name, iname, ...)                                                 \
    (form == BLOCKING      ? (void)MPI_##name(__VA_ARGS__)                   \
     : form == NONBLOCKING ? (MPI_I##iname(__VA_ARGS__, &request), finish()) \
                           : (INIT(name)(__VA_ARGS__, MPI_INFO_NULL, &request), finish()))

static void all(char *out, char *in)
{
    int64_t others = sites - 1, each = (int64_t)sites * others, away = ranks - site_size[0];
    int counts[64], places[64];
    for (int i = 0; i < ranks; i++)
        counts[i] = SMALL, places[i] = i * SMALL;
    start(), DO(Barrier, barrier, MPI_COMM_WORLD), expect("barrier", each, 0);
    start(), DO(Bcast, bcast, out, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD),
        expect("bcast", others, others * SMALL);
    start(), DO(Bcast, bcast, out, SMALL, MPI_BYTE, ranks - 1, MPI_COMM_WORLD),
        expect("bcast of the last", others, others * SMALL);
    start(), DO(Bcast, bcast, out, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD),
        expect("large bcast", others * PIECES, others * LARGE);
    start(), DO(Reduce, reduce, out, in, SMALL, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD),
        expect("reduce", others, others * SMALL);
    start(), DO(Reduce, reduce, out, in, LARGE, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD);
    expect("large reduce", others * PIECES, others * LARGE);
    start(), DO(Allreduce, allreduce, out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD),
        expect("allreduce", each, each * SMALL);
    start(), DO(Allreduce, allreduce, out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect_large_allreduce();
    start(),
        DO(Reduce_scatter_block, reduce_scatter_block, out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("reduce_scatter_block", each, others * ranks * SMALL);
    start(), DO(Reduce_scatter, reduce_scatter, out, in, counts, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("reduce_scatter", each, others * ranks * SMALL);
    start(),
        DO(Reduce_scatter_block, reduce_scatter_block, out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large reduce_scatter_block", others * ranks * PIECES, others * ranks * LARGE);
    start(), DO(Gather, gather, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD),
        expect("gather", others, away * SMALL);
    start(), DO(Gather, gather, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD),
        expect("large gather", away * PARTS, away * LARGE);
    start(), DO(Gatherv, gatherv, out, SMALL, MPI_BYTE, in, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect("gatherv", away, away * SMALL);
    start(), DO(Scatter, scatter, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD),
        expect("scatter", others, away * SMALL);
    start(), DO(Scatter, scatter, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD),
        expect("large scatter", away * PARTS, away * LARGE);
    start(), DO(Scatterv, scatterv, out, counts, places, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect("scatterv", away, away * SMALL);
    start(), DO(Allgather, allgather, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, MPI_COMM_WORLD);
    expect("allgather", each, others * ranks * SMALL);
    start(), DO(Allgather, allgather, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, MPI_COMM_WORLD);
    expect("large allgather", others * ranks * PIECES, others * ranks * LARGE);
    start(), DO(Allgatherv, allgatherv, out, SMALL, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect("allgatherv", others * ranks, others * ranks * SMALL);
    start(), DO(Alltoall, alltoall, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, MPI_COMM_WORLD),
        expect("alltoall", each, pairs() * SMALL);
    start(), DO(Alltoall, alltoall, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, MPI_COMM_WORLD);
    expect("large alltoall", pairs(), pairs() * LARGE);
    start(),
        DO(Alltoallv, alltoallv, out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect("alltoallv", pairs(), pairs() * SMALL);
    start(), DO(Scan, scan, out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD),
        expect("scan", each / 2, each / 2 * SMALL);
    start(), DO(Exscan, exscan, out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large exscan", each / 2 * PIECES, each / 2 * LARGE);
}

/* The greatest of numbers and of what is no number depends on which comes first. It must be the same one at
 * all ranks. */
static void same_everywhere(double *out, double *in)
{
    int large = LARGE / (int)sizeof *out;
    for (int count = 1; count <= large; count += large - 1) {
        for (int i = 0; i < count; i++)
            out[i] = rank == i % ranks ? NAN : rank;
        MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        memcpy(out, in, count * sizeof *out);
        MPI_Bcast(out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (memcmp(out, in, count * sizeof *out)) {
            fprintf(stderr, "rank %d: an allreduce of %d gave other bits than at rank 0\n", rank, count);
            wrong = 1;
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_crossings = (void (*)(struct crossings *))dlsym(RTLD_DEFAULT, CROSSINGS);
    read_crossings_to = (void (*)(int, struct crossings *))dlsym(RTLD_DEFAULT, CROSSINGS "_to");
    int sum = 0, slow = argc == 5 && strcmp(argv[1], "slow") == 0;
    for (int i = 1 + slow; i < argc; i++)
        sum += site_size[sites++] = atoi(argv[i]);
    if (!read_crossings || !read_crossings_to || sites < 2 || sum != ranks) {
        fprintf(stderr,
                "crossings: the library is not preloaded, or the sites' sizes are not those of the job\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *out = calloc((size_t)LARGE * (size_t)ranks, 1), *in = calloc((size_t)LARGE * (size_t)ranks, 1);
    /* The communicator's first collective makes its hierarchy. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (slow) {
        slow_pair(out, in);
        report();
        MPI_Finalize();
        return wrong;
    }

    for (form = 0; form < (lets_others_progress() ? FORMS : 1); form++)
        all(out, in);
    same_everywhere((double *)out, (double *)in);
    free(out);
    free(in);
    report();
    MPI_Finalize();
    return wrong;
}
