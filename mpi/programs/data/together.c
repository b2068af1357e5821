#include "together.h"

#include "left_out.h"

#include <stdio.h>
#include <stdlib.h>

/* Numbers of bytes that one rank has for another. */
static const int sizes[] = {1, 48, 1000, 4096, 8240, 24576, 65536, 131088, 300000};

/* Not a tag of exchange.c: a rank that has finished its exchanges may send to one that still probes for an
 * exchange's tag from any source. */
#define SENDRECV_TAG 1000

/* With more ranks these calls are skipped; tests have fewer. */
#define MOST_RANKS 256

struct call {
    uint64_t seed;
    int rank, ranks, word, words, root;
    struct random own; /* differs from rank to rank */
    char what[200];
};

/* One end, with memory for several blocks one after the other. */
struct place {
    struct end end;
    struct memory memory;
    struct memory_view *views;
    int count;
};

static struct place place_make(struct call *call, int words, int blocks)
{
    struct place place = {.views = calloc((size_t)blocks + 1, sizeof(struct memory_view))};
    enum layout_kind kind =
        random_below(&call->own, 4) ? (enum layout_kind)random_below(&call->own, LAYOUT_KINDS) : LAYOUT_KINDS;
    end_make(&place.end, call->word, words, kind, &call->own);
    place.memory = memory_make(&place.end.layout, place.end.instances * blocks);
    if (!place.views)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return place;
}

/* Returns the offset of block `index` from the buffer passed to MPI. */
static ptrdiff_t block_at(const struct place *place, int index)
{
    return (ptrdiff_t)index * place->end.instances * place->end.layout.extent;
}

/* The seed of the stream of words that one rank has for another. */
static uint64_t stream(const struct call *call, int from, int to)
{
    return random_mix(call->seed + 65537u * (uint64_t)from + (uint64_t)to);
}

static void fill_block(struct place *place, int index, uint64_t seed)
{
    struct memory block = place->memory;
    block.buffer += block_at(place, index);
    memory_fill(&block, &place->end.layout, place->end.instances, seed, 0);
}

static void expect_block(struct place *place, int index, uint64_t seed)
{
    place->views[place->count++] =
        (struct memory_view){&place->end.layout, place->end.instances, seed, 0, block_at(place, index)};
}

static long place_end(struct place *place, struct call *call, int error, int is_received)
{
    long wrong = 0;
    if (error) {
        char text[ERROR_TEXT];
        int length;
        MPI_Error_string(error, text, &length);
        fprintf(stderr, "%s: %s\n", call->what, text);
        wrong = 1;
    } else if (is_received) {
        char what[400];
        snprintf(what, sizeof what, "%s, %s", call->what, place->end.layout.name);
        wrong = memory_compare(&place->memory, place->views, place->count, what) != 0;
    }
    end_free(&place->end);
    memory_free(&place->memory);
    free(place->views);
    return wrong;
}

/* Returns this rank's partner, whose partner is this rank. It may be this rank itself. */
static int partner(const struct call *call)
{
    struct random random = {call->seed + 5};
    int shift = random_below(&random, call->ranks);
    return ((shift - call->rank) % call->ranks + call->ranks) % call->ranks;
}

static long sendrecv(struct call *call)
{
    int other = partner(call);
    struct place out = place_make(call, call->words, 1), in = place_make(call, call->words, 1);
    fill_block(&out, 0, stream(call, call->rank, other));
    expect_block(&in, 0, stream(call, other, call->rank));
    int error = MPI_Sendrecv(out.memory.buffer, out.end.instances, out.end.layout.type, other, SENDRECV_TAG,
                             in.memory.buffer, in.end.instances, in.end.layout.type, other, SENDRECV_TAG,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

static long sendrecv_replace(struct call *call)
{
    int other = partner(call);
    struct place both = place_make(call, call->words, 1);
    fill_block(&both, 0, stream(call, call->rank, other));
    expect_block(&both, 0, stream(call, other, call->rank));
    int error = MPI_Sendrecv_replace(both.memory.buffer, both.end.instances, both.end.layout.type, other,
                                     SENDRECV_TAG, other, SENDRECV_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return place_end(&both, call, error, 1);
}

static long bcast(struct call *call)
{
    struct place all = place_make(call, call->words, 1);
    if (call->rank == call->root)
        fill_block(&all, 0, stream(call, call->root, 0));
    expect_block(&all, 0, stream(call, call->root, 0));
    int error =
        MPI_Bcast(all.memory.buffer, all.end.instances, all.end.layout.type, call->root, MPI_COMM_WORLD);
    return place_end(&all, call, error, 1);
}

static long gather(struct call *call)
{
    struct place out = place_make(call, call->words, 1), in = place_make(call, call->words, call->ranks);
    fill_block(&out, 0, stream(call, call->rank, call->root));
    for (int from = 0; from < call->ranks && call->rank == call->root; from++)
        expect_block(&in, from, stream(call, from, call->root));
    int error = MPI_Gather(out.memory.buffer, out.end.instances, out.end.layout.type, in.memory.buffer,
                           in.end.instances, in.end.layout.type, call->root, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

static long scatter(struct call *call)
{
    struct place out = place_make(call, call->words, call->ranks), in = place_make(call, call->words, 1);
    for (int to = 0; to < call->ranks && call->rank == call->root; to++)
        fill_block(&out, to, stream(call, call->root, to));
    expect_block(&in, 0, stream(call, call->root, call->rank));
    int error = MPI_Scatter(out.memory.buffer, out.end.instances, out.end.layout.type, in.memory.buffer,
                            in.end.instances, in.end.layout.type, call->root, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

/* Places blocks of the same size one after the other, in reverse order. */
static void displacements(const struct place *place, int ranks, int counts[], int at[])
{
    for (int i = 0; i < ranks; i++) {
        counts[i] = place->end.instances;
        at[i] = (ranks - 1 - i) * place->end.instances;
    }
}

static long gatherv(struct call *call)
{
    int counts[MOST_RANKS], at[MOST_RANKS];
    struct place out = place_make(call, call->words, 1), in = place_make(call, call->words, call->ranks);
    displacements(&in, call->ranks, counts, at);
    fill_block(&out, 0, stream(call, call->rank, call->root));
    for (int from = 0; from < call->ranks && call->rank == call->root; from++)
        expect_block(&in, call->ranks - 1 - from, stream(call, from, call->root));
    int error = MPI_Gatherv(out.memory.buffer, out.end.instances, out.end.layout.type, in.memory.buffer,
                            counts, at, in.end.layout.type, call->root, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

static long scatterv(struct call *call)
{
    int counts[MOST_RANKS], at[MOST_RANKS];
    struct place out = place_make(call, call->words, call->ranks), in = place_make(call, call->words, 1);
    displacements(&out, call->ranks, counts, at);
    for (int to = 0; to < call->ranks && call->rank == call->root; to++)
        fill_block(&out, call->ranks - 1 - to, stream(call, call->root, to));
    expect_block(&in, 0, stream(call, call->root, call->rank));
    int error = MPI_Scatterv(out.memory.buffer, counts, at, out.end.layout.type, in.memory.buffer,
                             in.end.instances, in.end.layout.type, call->root, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

static long allgather(struct call *call)
{
    struct place out = place_make(call, call->words, 1), in = place_make(call, call->words, call->ranks);
    fill_block(&out, 0, stream(call, call->rank, 0));
    for (int from = 0; from < call->ranks; from++)
        expect_block(&in, from, stream(call, from, 0));
    int error = MPI_Allgather(out.memory.buffer, out.end.instances, out.end.layout.type, in.memory.buffer,
                              in.end.instances, in.end.layout.type, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

static long allgatherv(struct call *call)
{
    int counts[MOST_RANKS], at[MOST_RANKS];
    struct place out = place_make(call, call->words, 1), in = place_make(call, call->words, call->ranks);
    displacements(&in, call->ranks, counts, at);
    fill_block(&out, 0, stream(call, call->rank, 0));
    for (int from = 0; from < call->ranks; from++)
        expect_block(&in, call->ranks - 1 - from, stream(call, from, 0));
    int error = MPI_Allgatherv(out.memory.buffer, out.end.instances, out.end.layout.type, in.memory.buffer,
                               counts, at, in.end.layout.type, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

static long alltoall(struct call *call)
{
    struct place out = place_make(call, call->words, call->ranks),
                 in = place_make(call, call->words, call->ranks);
    for (int other = 0; other < call->ranks; other++) {
        fill_block(&out, other, stream(call, call->rank, other));
        expect_block(&in, other, stream(call, other, call->rank));
    }
    int error = MPI_Alltoall(out.memory.buffer, out.end.instances, out.end.layout.type, in.memory.buffer,
                             in.end.instances, in.end.layout.type, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

static long alltoallv(struct call *call)
{
    int out_counts[MOST_RANKS], out_at[MOST_RANKS], in_counts[MOST_RANKS], in_at[MOST_RANKS];
    struct place out = place_make(call, call->words, call->ranks),
                 in = place_make(call, call->words, call->ranks);
    displacements(&out, call->ranks, out_counts, out_at);
    displacements(&in, call->ranks, in_counts, in_at);
    for (int other = 0; other < call->ranks; other++) {
        fill_block(&out, call->ranks - 1 - other, stream(call, call->rank, other));
        expect_block(&in, call->ranks - 1 - other, stream(call, other, call->rank));
    }
    int error = MPI_Alltoallv(out.memory.buffer, out_counts, out_at, out.end.layout.type, in.memory.buffer,
                              in_counts, in_at, in.end.layout.type, MPI_COMM_WORLD);
    return place_end(&out, call, error, 0) + place_end(&in, call, error, 1);
}

/* Passes a datatype and a displacement in bytes for each peer: one datatype for all sends, another for all
 * receives. */
static long alltoallw(struct call *call)
{
    int counts[2][MOST_RANKS], at[2][MOST_RANKS];
    MPI_Datatype types[2][MOST_RANKS];
    struct place places[2] = {place_make(call, call->words, call->ranks),
                              place_make(call, call->words, call->ranks)};
    for (int other = 0; other < call->ranks; other++) {
        fill_block(&places[0], other, stream(call, call->rank, other));
        expect_block(&places[1], other, stream(call, other, call->rank));
        for (int i = 0; i < 2; i++) {
            counts[i][other] = places[i].end.instances;
            at[i][other] = (int)block_at(&places[i], other);
            types[i][other] = places[i].end.layout.type;
        }
    }
    int error = MPI_Alltoallw(places[0].memory.buffer, counts[0], at[0], types[0], places[1].memory.buffer,
                              counts[1], at[1], types[1], MPI_COMM_WORLD);
    return place_end(&places[0], call, error, 0) + place_end(&places[1], call, error, 1);
}

static const struct {
    const char *name;
    long (*run)(struct call *call);
} calls[] = {
    {"MPI_Sendrecv", sendrecv},     {"MPI_Sendrecv_replace", sendrecv_replace},
    {"MPI_Bcast", bcast},           {"MPI_Gather", gather},
    {"MPI_Scatter", scatter},       {"MPI_Gatherv", gatherv},
    {"MPI_Scatterv", scatterv},     {"MPI_Allgather", allgather},
    {"MPI_Allgatherv", allgatherv}, {"MPI_Alltoall", alltoall},
    {"MPI_Alltoallv", alltoallv},   {"MPI_Alltoallw", alltoallw},
};

long together_run(const struct together *together, long number)
{
    struct random random = {random_mix(together->seed + 7) ^ random_mix((uint64_t)number)};
    int kind = (int)(number % (long)(sizeof calls / sizeof *calls));
    if (is_left_out(calls[kind].name))
        return 0;
    struct call call = {.seed = random_next(&random)};
    MPI_Comm_rank(MPI_COMM_WORLD, &call.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &call.ranks);
    if (call.ranks > MOST_RANKS)
        return 0;
    static const int multiples[] = {1, 12, 60, 840};
    int multiple = multiples[random_below(&random, 4)];
    call.word = random_below(&random, words_count());
    int bytes = sizes[random_below(&random, sizeof sizes / sizeof *sizes)];
    call.words = (bytes < together->most_bytes ? bytes : together->most_bytes) / words_bytes(call.word);
    call.words =
        call.words < multiple ? (call.words < 1 ? 1 : call.words) : call.words - call.words % multiple;
    call.root = random_below(&random, call.ranks);
    call.own.state = call.seed + 101 * (uint64_t)call.rank;
    snprintf(call.what, sizeof call.what, "data: call %ld, %s of %d words of %d bytes, root %d, rank %d",
             number, calls[kind].name, call.words, words_bytes(call.word), call.root, call.rank);
    return calls[kind].run(&call);
}
