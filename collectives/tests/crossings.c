/* How many messages and bytes each operation sends from site to site, against what it must be: no timing, no chance.
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
        fprintf(stderr, "%s: %lld messages and %lld bytes crossed, not %lld and %lld\n", what, (long long)all.messages,
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

int main(int argc, char **argv)
{
    enum { SMALL = 1024, FLIT = 256 * 1024, PIECES = 5, LARGE = PIECES * FLIT };
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
    int64_t others = sites - 1, each = (int64_t)sites * others, away = ranks - site_size[0];
    int counts[64], places[64];
    for (int i = 0; i < ranks; i++)
        counts[i] = SMALL, places[i] = i * SMALL;
    /* What a communicator is known by is agreed on in its first operation. */
    MPI_Barrier(MPI_COMM_WORLD);

    start(), MPI_Barrier(MPI_COMM_WORLD), expect("barrier", each, 0);
    start(), MPI_Bcast(out, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD), expect("bcast", others, others * SMALL);
    start(), MPI_Bcast(out, SMALL, MPI_BYTE, ranks - 1, MPI_COMM_WORLD), expect("bcast of the last", others, others * SMALL);
    start(), MPI_Bcast(out, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD), expect("large bcast", others * PIECES, others * LARGE);
    start(), MPI_Reduce(out, in, SMALL, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD), expect("reduce", others, others * SMALL);
    start(), MPI_Reduce(out, in, LARGE, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD);
    expect("large reduce", others * PIECES, others * LARGE);
    start(), MPI_Allreduce(out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD), expect("allreduce", each, each * SMALL);
    start(), MPI_Allreduce(out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large allreduce", each * PIECES, each * LARGE);
    start(), MPI_Reduce_scatter_block(out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("reduce_scatter_block", each, others * ranks * SMALL);
    start(), MPI_Reduce_scatter(out, in, counts, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("reduce_scatter", each, others * ranks * SMALL);
    start(), MPI_Reduce_scatter_block(out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large reduce_scatter_block", others * ranks * PIECES, others * ranks * LARGE);
    start(), MPI_Gather(out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD), expect("gather", others, away * SMALL);
    start(), MPI_Gather(out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD), expect("large gather", away, away * LARGE);
    start(), MPI_Gatherv(out, SMALL, MPI_BYTE, in, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect("gatherv", away, away * SMALL);
    start(), MPI_Scatter(out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD), expect("scatter", others, away * SMALL);
    start(), MPI_Scatter(out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD), expect("large scatter", away, away * LARGE);
    start(), MPI_Scatterv(out, counts, places, MPI_BYTE, in, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect("scatterv", away, away * SMALL);
    start(), MPI_Allgather(out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, MPI_COMM_WORLD);
    expect("allgather", each, others * ranks * SMALL);
    start(), MPI_Allgather(out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, MPI_COMM_WORLD);
    expect("large allgather", others * ranks * PIECES, others * ranks * LARGE);
    start(), MPI_Allgatherv(out, SMALL, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect("allgatherv", others * ranks, others * ranks * SMALL);
    start(), MPI_Alltoall(out, SMALL, MPI_BYTE, in, SMALL, MPI_BYTE, MPI_COMM_WORLD), expect("alltoall", each, pairs() * SMALL);
    start(), MPI_Alltoall(out, LARGE, MPI_BYTE, in, LARGE, MPI_BYTE, MPI_COMM_WORLD);
    expect("large alltoall", pairs(), pairs() * LARGE);
    start(), MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect("alltoallv", pairs(), pairs() * SMALL);
    start(), MPI_Scan(out, in, SMALL, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD), expect("scan", each / 2, each / 2 * SMALL);
    start(), MPI_Exscan(out, in, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect("large exscan", each / 2 * PIECES, each / 2 * LARGE);

    free(out);
    free(in);
    if (rank == 0)
        printf("crossings over %d sites: %s\n", sites, wrong ? "WRONG" : "as they must be");
    MPI_Finalize();
    return wrong;
}
