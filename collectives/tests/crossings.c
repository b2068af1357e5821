/* How many messages and bytes each operation, in each of its forms, sends from site to site, against what it must be: no timing, no chance.
 *
 * crossings RANKS_OF_SITE...: the sizes of the sites that CAUSEWAY_COLLECTIVES_SITES gives, in the order of ranks. */
#include "native.h"

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
        fprintf(stderr, "%s, form %d: %lld messages and %lld bytes crossed, not %lld and %lld\n", what, form, (long long)all.messages,
                (long long)all.bytes, (long long)messages, (long long)bytes);
}

/* Pairs of ranks at different sites, each way. */
static int64_t pairs(void)
{
    int64_t sum = 0;
    for (int s = 0; s < sites; s++)
        sum += (int64_t)site_size[s] * (ranks - site_size[s]);
    return sum;
}

static void finish(void)
{
    if (form == PERSISTENT)
        MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (form == PERSISTENT)
        MPI_Request_free(&request);
}

#define DO(name, iname, ...)                                                                                           \
    (form == BLOCKING      ? (void)MPI_##name(__VA_ARGS__)                                                             \
     : form == NONBLOCKING ? (MPI_I##iname(__VA_ARGS__, &request), finish())                                           \
                           : (INIT(name)(__VA_ARGS__, MPI_INFO_NULL, &request), finish()))

enum { SMALL = 1024, FLIT = 256 * 1024, PIECES = 5, LARGE = PIECES * FLIT };

static void all(char *out, char *in)
{
    int64_t others = sites - 1, each = (int64_t)sites * others, away = ranks - site_size[0];
    int counts[64], places[64];
    for (int i = 0; i < ranks; i++)
        counts[i] = SMALL, places[i] = i * SMALL;
    start(), DO(Barrier, barrier, MPI_COMM_WORLD), expect("barrier", each, 0);
    start(), DO(Bcast, bcast, out, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD), expect("bcast", others, others * SMALL);
    start(), DO(Bcast, bcast, out, SMALL, MPI_BYTE, ranks - 1, MPI_COMM_WORLD), expect("bcast of the last", others, others * SMALL);
    start(), DO(Bcast, bcast, out, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD), expect("large bcast", others * PIECES, others * LARGE);
    start(), DO(Reduce, reduce, out, in, SMALL, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD), expect("reduce", others, others * SMALL);
    start(), DO(Reduce, reduce, out, in, LARGE, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD);
    expect("large reduce", others * PIECES, others * LARGE);
    start(), DO(Allreduce, allreduce, out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD), expect("allreduce", each, each * SMALL);
    start(), DO(Allreduce, allreduce, out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large allreduce", each * PIECES, each * LARGE);
    start(), DO(Reduce_scatter_block, reduce_scatter_block, out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("reduce_scatter_block", each, others * ranks * SMALL);
    start(), DO(Reduce_scatter, reduce_scatter, out, in, counts, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("reduce_scatter", each, others * ranks * SMALL);
    start(), DO(Reduce_scatter_block, reduce_scatter_block, out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large reduce_scatter_block", others * ranks * PIECES, others * ranks * LARGE);
    start(), DO(Gather, gather, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD), expect("gather", others, away * SMALL);
    start(), DO(Gather, gather, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD), expect("large gather", away, away * LARGE);
    start(), DO(Gatherv, gatherv, out, SMALL, MPI_BYTE, in, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect("gatherv", away, away * SMALL);
    start(), DO(Scatter, scatter, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD), expect("scatter", others, away * SMALL);
    start(), DO(Scatter, scatter, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD), expect("large scatter", away, away * LARGE);
    start(), DO(Scatterv, scatterv, out, counts, places, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect("scatterv", away, away * SMALL);
    start(), DO(Allgather, allgather, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, MPI_COMM_WORLD);
    expect("allgather", each, others * ranks * SMALL);
    start(), DO(Allgather, allgather, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, MPI_COMM_WORLD);
    expect("large allgather", others * ranks * PIECES, others * ranks * LARGE);
    start(), DO(Allgatherv, allgatherv, out, SMALL, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect("allgatherv", others * ranks, others * ranks * SMALL);
    start(), DO(Alltoall, alltoall, out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, MPI_COMM_WORLD), expect("alltoall", each, pairs() * SMALL);
    start(), DO(Alltoall, alltoall, out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, MPI_COMM_WORLD);
    expect("large alltoall", pairs(), pairs() * LARGE);
    start(), DO(Alltoallv, alltoallv, out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect("alltoallv", pairs(), pairs() * SMALL);
    start(), DO(Scan, scan, out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD), expect("scan", each / 2, each / 2 * SMALL);
    start(), DO(Exscan, exscan, out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large exscan", each / 2 * PIECES, each / 2 * LARGE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_crossings = (void (*)(struct crossings *))dlsym(RTLD_DEFAULT, CROSSINGS);
    int sum = 0;
    for (int i = 1; i < argc; i++)
        sum += site_size[sites++] = atoi(argv[i]);
    if (!read_crossings || sites < 2 || sum != ranks) {
        fprintf(stderr, "crossings: the library is not preloaded, or the sites' sizes are not those of the job\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *out = calloc((size_t)LARGE * (size_t)ranks, 1), *in = calloc((size_t)LARGE * (size_t)ranks, 1);
    /* What a communicator is known by is agreed on in its first operation. */
    MPI_Barrier(MPI_COMM_WORLD);

    for (form = 0; form < (lets_others_progress() ? FORMS : 1); form++)
        all(out, in);
    free(out);
    free(in);
    if (rank == 0)
        printf("crossings over %d sites: %s\n", sites, wrong ? "WRONG" : "as they must be");
    MPI_Finalize();
    return wrong;
}
