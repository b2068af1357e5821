/* Random collectives on random communicators, each done twice, by way of the preload library, in one of its three forms, with large
 * counts or not, and several under way at a time, and by the MPI alone; every byte of every buffer must be the same after both.
 *
 * compare CASES|SECONDSs [SEED]: prints what was compared, and for the first difference how to have it again. With a time (60s) other
 * communicators are made and freed all the while, and memory must not grow. */
#include "native.h"

#include "communicators.h"

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Under way at a time. */
#define MOST_AT_ONCE 6

/* 2 x 2 matrices over the integers modulo 2^32: associative, and not commutative. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    uint32_t *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        uint32_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static void exclusive_or(void *in, void *inout, int *count, MPI_Datatype *type)
{
    uint32_t *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < 4 * *count; i++)
        b[i] ^= a[i];
}

struct kind {
    const char *name;
    MPI_Datatype type;
    /* For reductions; of those, what the elements are made of. */
    MPI_Op ops[4];
    int op_count;
    enum { BYTES, INTS, DOUBLES, PAIRS, MATRICES } filled;
    MPI_Aint extent;
    /* Without what follows the last. */
    size_t bytes;
};

/* Of 4 GB: what has no elements may be said to be of it. */
static MPI_Datatype huge;

static struct kind kinds[12];
static int kind_count;

static void add_kind(const char *name, MPI_Datatype type, int filled, int op_count, MPI_Op a, MPI_Op b, MPI_Op c)
{
    MPI_Aint lb;
    struct kind *kind = &kinds[kind_count++];
    *kind = (struct kind){.name = name, .type = type, .filled = filled, .op_count = op_count, .ops = {a, b, c}};
    MPI_Aint bytes;
    MPI_Type_get_extent(type, &lb, &kind->extent);
    MPI_Type_get_true_extent(type, &lb, &bytes);
    kind->bytes = (size_t)bytes;
}

static void make_kinds(void)
{
    MPI_Datatype four, spread, resized, mixed;
    MPI_Op product, difference;
    MPI_Op_create(multiply, 0, &product);
    MPI_Op_create(exclusive_or, 1, &difference);
    add_kind("byte", MPI_BYTE, BYTES, 2, MPI_BXOR, MPI_BAND, MPI_OP_NULL);
    add_kind("int", MPI_INT, INTS, 3, MPI_SUM, MPI_MAX, MPI_PROD);
    add_kind("double", MPI_DOUBLE, DOUBLES, 3, MPI_SUM, MPI_MIN, MPI_MAX);
    add_kind("double and int", MPI_DOUBLE_INT, PAIRS, 2, MPI_MAXLOC, MPI_MINLOC, MPI_OP_NULL);
    MPI_Type_contiguous(4, MPI_UNSIGNED, &four);
    MPI_Type_commit(&four);
    add_kind("matrix", four, MATRICES, 2, product, difference, MPI_OP_NULL);
#if MPI_VERSION >= 4
    MPI_Type_vector_c(3, 2, 4, MPI_SHORT, &spread);
#else
    MPI_Type_vector(3, 2, 4, MPI_SHORT, &spread);
#endif
    MPI_Type_commit(&spread);
    add_kind("vector", spread, BYTES, 0, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL);
    MPI_Type_create_resized(MPI_INT, -4, 20, &resized);
    MPI_Type_commit(&resized);
    add_kind("resized int", resized, BYTES, 0, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL);
    MPI_Type_contiguous(1 << 30, MPI_INT, &huge);
    MPI_Type_commit(&huge);
    int lengths[2] = {1, 4};
    MPI_Aint places[2] = {4, 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_CHAR};
    MPI_Type_create_struct(2, lengths, places, types, &mixed);
    MPI_Type_commit(&mixed);
    add_kind("struct out of order", mixed, BYTES, 0, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL);
}

/* A buffer: memory with room before and behind, so that writing outside shows. */
struct memory {
    char *all, *at;
    size_t bytes;
};

#define MARGIN 64

static struct memory memory_of(int64_t elements, const struct kind *kind)
{
    struct memory memory;
    memory.bytes = elements * (kind->extent > 0 ? kind->extent : 1) + 2 * MARGIN + 64;
    memory.all = malloc(memory.bytes);
    memory.at = memory.all + MARGIN;
    memset(memory.all, 0xa5, memory.bytes);
    return memory;
}

static void fill(struct memory *memory, int64_t elements, const struct kind *kind, int rank)
{
    uint32_t word = 12345u + 977u * rank;
    char *at = memory->at;
    for (int64_t i = 0; i < elements; i++, at += kind->extent) {
        word = word * 1664525u + 1013904223u;
        double number = (double)(word >> 20);
        switch (kind->filled) {
        case INTS:
            *(int *)(void *)at = (int)(word >> 8) % 1000;
            break;
        case DOUBLES:
            *(double *)(void *)at = number;
            break;
        case PAIRS:
            memcpy(at, &number, sizeof number);
            *(int *)(void *)(at + sizeof number) = (int)(word % 7);
            break;
        case MATRICES:
            for (int j = 0; j < 4; j++)
                ((uint32_t *)(void *)at)[j] = word >> j;
            break;
        default:
            for (MPI_Aint j = 0; j < kind->extent; j++)
                at[j] = (char)(word >> (j % 4 * 8)) + (char)j;
        }
    }
}

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER,
       ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, SCAN, EXSCAN, OPERATIONS };

static const char *const names[OPERATIONS] = {"barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block",
    "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "scan", "exscan"};

struct one {
    int operation, which, count, root, in_place;
    const struct kind *kind;
    MPI_Op op;
    MPI_Comm comm;
    int rank, size;
    enum { BLOCKING, NONBLOCKING, PERSISTENT } form;
    MPI_Request request;
    /* Native and ours. */
    int status[2];
    int counts[MOST_RANKS], places[MOST_RANKS], total;
    /* What the v and w forms are told. */
    int said_counts[MOST_RANKS], said_places[MOST_RANKS];
    int out_counts[MOST_RANKS], out_places[MOST_RANKS], in_counts[MOST_RANKS], in_places[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    int is_large;
    struct {
        MPI_Count counts[MOST_RANKS], out_counts[MOST_RANKS], in_counts[MOST_RANKS];
        MPI_Aint places[MOST_RANKS], out_places[MOST_RANKS], in_places[MOST_RANKS];
    } large;
    /* Of the v and w forms of alltoall: what rank i sends to rank j. */
    int table[MOST_RANKS][MOST_RANKS];
};

#define FORM_OF(Name, Iname, Init, ...)                                                                               \
    (one->form == BLOCKING      ? MPI_##Name(__VA_ARGS__)                                                              \
     : one->form == NONBLOCKING ? MPI_##Iname(__VA_ARGS__, &one->request)                                              \
                                : started(Init(__VA_ARGS__, MPI_INFO_NULL, &one->request), &one->request))
#if MPI_VERSION >= 4
/* The arguments' names mean arrays of large counts there. */
#define LARGE_FORM_OF(name, iname, ...)                                                                                \
    __extension__({                                                                                                    \
        MPI_Count *counts = one->large.counts, *out_counts = one->large.out_counts, *in_counts = one->large.in_counts; \
        MPI_Aint *places = one->large.places, *out_places = one->large.out_places, *in_places = one->large.in_places;  \
        (void)counts, (void)out_counts, (void)in_counts, (void)places, (void)out_places, (void)in_places;             \
        FORM_OF(name##_c, I##iname##_c, MPI_##name##_init_c, __VA_ARGS__);                                             \
    })
#else
#define LARGE_FORM_OF(name, iname, ...) MPI_ERR_OTHER
#endif
#define CALL(name, iname, ...)                                                                                         \
    (!ours             ? NATIVE(name)(__VA_ARGS__)                                                                     \
     : one->is_large   ? LARGE_FORM_OF(name, iname, __VA_ARGS__)                                                       \
                       : FORM_OF(name, I##iname, INIT(name), __VA_ARGS__))

static int started(int status, MPI_Request *request) { return status ? status : MPI_Start(request); }

/* MPICH 4.0.2's own reduce crashes in place where the root is not rank 0, and adds up wrongly where two nodes have
 * unlike numbers of ranks, in reverse. */
static int reduce_by_hand(const struct one *one, const char *from, char *into)
{
    size_t bytes = (size_t)one->count * (size_t)one->kind->extent;
    char *all = malloc(bytes * (size_t)one->size + 1);
    int counts[MOST_RANKS], places[MOST_RANKS];
    for (int i = 0; i < one->size; i++)
        counts[i] = one->count, places[i] = i * one->count;
    int status = NATIVE(Gatherv)(from, one->count, one->kind->type, all, counts, places, one->kind->type, one->root, one->comm);
    if (one->rank == one->root) {
        for (int i = one->size - 2; i >= 0; i--)
            NATIVE(Reduce_local)(all + bytes * (size_t)i, all + bytes * (size_t)(one->size - 1), one->count, one->kind->type, one->op);
        for (int i = 0; i < one->count; i++)
            memcpy(into + i * one->kind->extent, all + bytes * (size_t)(one->size - 1) + i * one->kind->extent, one->kind->bytes);
    }
    free(all);
    return status;
}

static int reduces(int operation)
{
    return operation == REDUCE || operation == ALLREDUCE || operation == REDUCE_SCATTER || operation == REDUCE_SCATTER_BLOCK ||
           operation == SCAN || operation == EXSCAN;
}

/* One rank may describe nothing otherwise than the others do. */
static MPI_Datatype type_of(const struct one *one)
{
    int any_elements = one->count > 0 || one->operation == ALLTOALLV || one->operation == ALLTOALLW;
    return any_elements || reduces(one->operation) || one->rank != one->root ? one->kind->type : huge;
}

static int call(struct one *one, char *from, char *into, int ours)
{
    MPI_Datatype type = type_of(one);
    int here = one->counts[one->rank], at_root = one->rank == one->root;
    void *in_place = MPI_IN_PLACE;
    int *out_counts = one->out_counts, *out_places = one->out_places, *in_counts = one->in_counts, *in_places = one->in_places;
    MPI_Datatype *types = one->types;
    int *counts = memcpy(one->said_counts, one->counts, sizeof one->counts);
    int *places = memcpy(one->said_places, one->places, sizeof one->places);
    int unit = one->operation == ALLTOALLW ? (int)one->kind->extent : 1;
    for (int i = 0, out = 0, in = 0; i < one->size; i++) {
        out_counts[i] = one->table[one->rank][i], in_counts[i] = one->table[i][one->rank];
        out_places[i] = out * unit, in_places[i] = in * unit;
        out += out_counts[i], in += in_counts[i];
        types[i] = type;
        one->large.counts[i] = counts[i], one->large.places[i] = places[i];
        one->large.out_counts[i] = out_counts[i], one->large.out_places[i] = out_places[i];
        one->large.in_counts[i] = in_counts[i], one->large.in_places[i] = in_places[i];
    }
    switch (one->operation) {
    case BARRIER:
        return ours ? FORM_OF(Barrier, Ibarrier, INIT(Barrier), one->comm) : NATIVE(Barrier)(one->comm);
    case BCAST:
        return CALL(Bcast, bcast, into, one->count, type, one->root, one->comm);
    case REDUCE:
        if (!ours)
            return reduce_by_hand(one, one->in_place && at_root ? into : from, into);
        return CALL(Reduce, reduce, one->in_place && at_root ? in_place : from, into, one->count, type, one->op, one->root, one->comm);
    case ALLREDUCE:
        return CALL(Allreduce, allreduce, one->in_place ? in_place : from, into, one->count, type, one->op, one->comm);
    case REDUCE_SCATTER:
        return CALL(Reduce_scatter, reduce_scatter, one->in_place ? in_place : from, into, counts, type, one->op, one->comm);
    case REDUCE_SCATTER_BLOCK:
        return CALL(Reduce_scatter_block, reduce_scatter_block, one->in_place ? in_place : from, into, one->count, type, one->op, one->comm);
    case GATHER:
        /* MPICH 4.0.2's own gather and scatter fail ("message truncated", or worse) for 2803 structs of {8: double, 0: 3 chars} on 5 ranks. */
        for (int i = 0; !ours && i < one->size; i++)
            in_counts[i] = one->count, in_places[i] = i * one->count;
        if (!ours)
            return NATIVE(Gatherv)(one->in_place && at_root ? in_place : from, one->count, type, into, in_counts, in_places, type,
                                   one->root, one->comm);
        return CALL(Gather, gather, one->in_place && at_root ? in_place : from, one->count, type, into, one->count, type, one->root,
                    one->comm);
    case GATHERV:
        return CALL(Gatherv, gatherv, one->in_place && at_root ? in_place : from, here, type, into, counts, places, type, one->root,
                    one->comm);
    case SCATTER:
        for (int i = 0; !ours && i < one->size; i++)
            out_counts[i] = one->count, out_places[i] = i * one->count;
        if (!ours)
            return NATIVE(Scatterv)(from, out_counts, out_places, type, one->in_place && at_root ? in_place : into, one->count, type,
                                    one->root, one->comm);
        return CALL(Scatter, scatter, from, one->count, type, one->in_place && at_root ? in_place : into, one->count, type, one->root,
                    one->comm);
    case SCATTERV:
        return CALL(Scatterv, scatterv, from, counts, places, type, one->in_place && at_root ? in_place : into, here, type, one->root,
                    one->comm);
    case ALLGATHER:
        return CALL(Allgather, allgather, one->in_place ? in_place : from, one->count, type, into, one->count, type, one->comm);
    case ALLGATHERV:
        return CALL(Allgatherv, allgatherv, one->in_place ? in_place : from, here, type, into, counts, places, type, one->comm);
    case ALLTOALL:
        /* MPICH 4.0.2's own crashes in place with MPI_DOUBLE_INT. */
        if (!ours && one->in_place)
            memcpy(from, into, (size_t)(one->count * one->kind->extent) * (size_t)one->size);
        if (!ours)
            return NATIVE(Alltoall)(from, one->count, type, into, one->count, type, one->comm);
        return CALL(Alltoall, alltoall, one->in_place ? in_place : from, one->count, type, into, one->count, type, one->comm);
    case ALLTOALLV:
        return CALL(Alltoallv, alltoallv, from, out_counts, out_places, type, into, in_counts, in_places, type, one->comm);
    case ALLTOALLW:
        return CALL(Alltoallw, alltoallw, from, out_counts, out_places, types, into, in_counts, in_places, types, one->comm);
    case SCAN:
        return CALL(Scan, scan, one->in_place ? in_place : from, into, one->count, type, one->op, one->comm);
    default:
        return CALL(Exscan, exscan, one->in_place ? in_place : from, into, one->count, type, one->op, one->comm);
    }
}

/* Mostly small, sometimes none, sometimes cut in several segments. */
static int draw_count(int ranks)
{
    switch (draw(12)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return 5000 + draw(60000) / ranks;
    case 3:
    case 4:
        return 500 + draw(3000);
    default:
        return 1 + draw(60);
    }
}

static void draw_one(struct one *one)
{
    memset(one, 0, sizeof *one);
    one->operation = draw(OPERATIONS);
    one->which = draw(COMMUNICATORS);
    one->comm = communicators[one->which];
    MPI_Comm_rank(one->comm, &one->rank);
    MPI_Comm_size(one->comm, &one->size);
    do {
        one->kind = &kinds[draw(kind_count)];
    } while (reduces(one->operation) && one->kind->op_count == 0);
    one->op = one->kind->op_count ? one->kind->ops[draw(one->kind->op_count)] : MPI_OP_NULL;
    one->count = draw_count(one->size);
    /* The ranks of a split communicator differ in number: the root must be one of all. */
    one->root = draw(1000) % one->size;
    one->in_place = draw(3) == 0;
    one->form = draw(3);
    /* Those of MPIs that do not let others take part in their progress are the MPIs' own, which MPICH 4.0.2 does not end. */
    if (!lets_others_progress())
        one->form = BLOCKING;
    one->is_large = draw(3) == 0 && MPI_VERSION >= 4;
    one->request = MPI_REQUEST_NULL;
    /* This one may lie on one site, where the MPI's own is called: nothing that MPICH 4.0.2 gets wrong. */
    if (one->which == PARTS) {
        one->in_place = 0;
        one->count %= 100;
    }
    uint32_t gap = draw(3);
    for (int i = 0; i < one->size; i++) {
        one->counts[i] = one->count / 2 + (int)((uint32_t)(one->count + i * 7) % (one->count + 1)) / 2;
        one->places[i] = one->total;
        one->total += one->counts[i];
        if (one->operation != REDUCE_SCATTER)
            one->total += gap;
        for (int j = 0; j < one->size; j++)
            one->table[i][j] = (i * 5 + j * 3 + one->count) % (one->count / one->size + 2);
    }
}

static int64_t most_elements(const struct one *one)
{
    int64_t most = (int64_t)one->count * one->size + one->total;
    int64_t rows = ((int64_t)one->count / one->size + 2) * one->size;
    return most > rows ? most : rows;
}

static void begin(struct one *one, struct memory memory[2], int number, int rank, int ours)
{
    if (getenv("COMPARE_TELLS"))
        fprintf(stderr, "rank %d: case %d, %s: %s, form %d, communicator %d, %d of %s, root %d, in place %d\n", rank, number,
                ours ? "causeway" : "native", names[one->operation], one->form, one->which, one->count, one->kind->name, one->root,
                one->in_place);
    for (int i = 0; i < 2; i++) {
        memory[i] = memory_of(most_elements(one), one->kind);
        fill(&memory[i], most_elements(one), one->kind, rank * 2 + i);
    }
    one->status[ours] = call(one, memory[0].at, memory[1].at, ours);
    /* Every MPI has read its arrays by now. */
    if (ours) {
        memset(one->said_counts, 0x55, sizeof one->said_counts);
        memset(one->said_places, 0x55, sizeof one->said_places);
        memset(one->out_counts, 0x55, sizeof one->out_counts);
        memset(one->in_counts, 0x55, sizeof one->in_counts);
        memset(&one->large, 0x55, sizeof one->large);
        memset(one->types, 0, sizeof one->types);
    }
}

/* Each rank waits in an order and a manner of its own. */
static void end(struct one *some, int many)
{
    MPI_Request requests[MOST_AT_ONCE];
    MPI_Status statuses[MOST_AT_ONCE];
    int rank, flag = 0, which;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < many; i++)
        requests[i] = some[i].request;
    switch ((rank + many) % 4) {
    case 0:
        MPI_Waitall(many, requests, statuses);
        break;
    case 1:
        for (int i = many - 1; i >= 0; i--)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
    case 2:
        /* Not MPI_Testall: MPICH 5.0.2 finds errors of others in its own persistent collectives. */
        for (int i = 0; i < many; i++)
            for (flag = 0; !flag;)
                MPI_Test(&requests[i], &flag, statuses);
        break;
    default:
        do {
            MPI_Waitany(many, requests, &which, MPI_STATUS_IGNORE);
        } while (which != MPI_UNDEFINED);
    }
    for (int i = 0; i < many; i++) {
        if (some[i].form == PERSISTENT && some[i].request != MPI_REQUEST_NULL)
            MPI_Request_free(&some[i].request);
        some[i].request = MPI_REQUEST_NULL;
    }
}

/* Frees the memory, too. */
static int compare(const struct one *one, struct memory memory[2][2], int number, uint64_t seed, int rank)
{
    int statuses = one->status[0] != one->status[1], differs = statuses;
    for (int i = 0; i < 2; i++)
        differs |= memcmp(memory[0][i].all, memory[1][i].all, memory[0][i].bytes) != 0;
    /* MPI leaves undefined what these ranks get. */
    if (one->operation == EXSCAN && one->rank == 0)
        differs = statuses;
    if (one->operation == REDUCE_SCATTER && one->in_place)
        differs = statuses || memcmp(memory[0][1].at, memory[1][1].at, one->counts[one->rank] * one->kind->extent) != 0;
    if (one->operation == REDUCE_SCATTER_BLOCK && one->in_place)
        differs = statuses || memcmp(memory[0][1].at, memory[1][1].at, one->count * one->kind->extent) != 0;
    if ((one->operation == REDUCE && one->in_place && one->rank == one->root) || (one->operation == ALLTOALL && one->in_place))
        differs = statuses || memcmp(memory[0][1].all, memory[1][1].all, memory[0][1].bytes) != 0;
    if (differs)
        fprintf(stderr, "rank %d: case %d of seed %llu: %s, form %d, communicator %d, %d of %s, op %d, root %d%s: statuses %d %d\n", rank,
                number, (unsigned long long)seed, names[one->operation], one->form, one->which, one->count, one->kind->name,
                (int)(one->op == one->kind->ops[1]), one->root, one->in_place ? ", in place" : "", one->status[0], one->status[1]);
    for (int ours = 0; ours < 2; ours++)
        for (int i = 0; i < 2; i++)
            free(memory[ours][i].all);
    return differs;
}

/* When the comparing ends: after so many cases, or so many seconds by rank 0's clock. */
struct extent {
    int cases, seconds;
    time_t began;
};

static struct extent extent_of(const char *text)
{
    char *unit;
    long number = strtol(text, &unit, 10);
    if (*unit == 's')
        return (struct extent){.cases = INT_MAX, .seconds = (int)number, .began = time(NULL)};
    return (struct extent){.cases = (int)number};
}

enum phase { WARMING, MEASURED, OVER };

static int phase_of(const struct extent *extent, int rank)
{
    time_t passed = time(NULL) - extent->began;
    if (!extent->seconds || rank != 0)
        return WARMING;
    return passed >= extent->seconds ? OVER : passed * 10 >= extent->seconds ? MEASURED : WARMING;
}

/* What a run may have more of in the end than after a tenth of its time. A levels that is not freed costs more than 4 kB with its two
 * communicators, and a soak of minutes makes ten thousands of them. */
#define MOST_GROWTH_BYTES (16 << 20)

/* Memory in use, without what the allocator keeps for the next. */
static int64_t resident_bytes(void)
{
    long all, resident = 0;
    malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &resident) != 2)
        fprintf(stderr, "compare: /proc/self/statm does not say how much memory is in use\n"), exit(2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, replaced = 0, phase = WARMING, done[OPERATIONS] = {0}, forms[3] = {0};
    int64_t warm_bytes = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct extent extent = extent_of(argc > 1 ? argv[1] : "1000");
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (!dlsym(RTLD_DEFAULT, CROSSINGS) || size > MOST_RANKS) {
        fprintf(stderr, "compare: %s\n", size > MOST_RANKS ? "too many ranks" : "the library is not preloaded");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    make_kinds();
    make_communicators(rank, size);
    int number = 0;
    static struct one some[MOST_AT_ONCE];
    static struct memory memory[MOST_AT_ONCE][2][2];
    while (number < extent.cases && phase != OVER && !wrong) {
        state = (seed * 1000003ULL + number + 1) * 0x9e3779b97f4a7c15ULL | 1;
        draw(2);
        if (extent.seconds && draw(4) == 0)
            replace_communicator(), replaced++;
        int many = draw(3) ? 1 : 2 + (int)draw(MOST_AT_ONCE - 1), differs = 0;
        for (int i = 0; i < many; i++)
            draw_one(&some[i]);
        for (int ours = 0; ours < 2; ours++) {
            for (int i = 0; i < many; i++) {
                begin(&some[i], memory[i][ours], number + i, rank, ours);
            }
            end(some, many);
        }
        for (int i = 0; i < many; i++, number++) {
            differs |= compare(&some[i], memory[i], number, seed, rank);
            done[some[i].operation]++;
            forms[some[i].form]++;
        }
        int own[2] = {differs, phase_of(&extent, rank)}, all[2];
        NATIVE(Allreduce)(own, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        wrong = all[0];
        if (phase == WARMING && all[1] != WARMING)
            warm_bytes = resident_bytes();
        phase = all[1];
    }
    int64_t growth = extent.seconds ? resident_bytes() - warm_bytes : 0, most_growth;
    NATIVE(Allreduce)(&growth, &most_growth, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    struct {
        int64_t messages, bytes;
    } crossed;
    ((void (*)(void *))dlsym(RTLD_DEFAULT, CROSSINGS))(&crossed);
    int64_t all = 0;
    NATIVE(Allreduce)(&crossed.messages, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d cases of seed %llu on %d ranks: %s; %lld messages between sites\n", number, (unsigned long long)seed, size,
               wrong ? "DIFFERENT" : "the same", (long long)all);
        for (int i = 0; i < OPERATIONS; i++)
            printf("  %s %d\n", names[i], done[i]);
        printf("  (blocking %d, non-blocking %d, persistent %d)\n", forms[BLOCKING], forms[NONBLOCKING], forms[PERSISTENT]);
        if (extent.seconds)
            printf("in %d s %d communicators were replaced; memory grew by %lld kB%s\n", extent.seconds, replaced,
                   (long long)most_growth / 1024, most_growth > MOST_GROWTH_BYTES ? ", WHICH IS TOO MUCH" : "");
        wrong |= all == 0;
    }
    wrong |= most_growth > MOST_GROWTH_BYTES;
    free_communicators();
    MPI_Finalize();
    return wrong;
}
