/* Compares random collectives on random communicators with the MPI's own. Each is done twice: by way of the
 * preload library, in one of its three forms, with large counts or not, and several under way at a time; and
 * by the MPI alone. Every byte of every buffer must be the same after both.
 *
 * compare CASES|SECONDSs [SEED]: prints what was compared, and for the first difference how to have it again.
 * With a time (60s) other communicators are made and freed all the while, and memory must not grow. */
#include "native.h"

#include "communicators.h"
#include "compare_extent.h"
#include "compare_kinds.h"

#include <stdint.h>
#include <string.h>

/* So many are under way at a time. */
#define MAX_AT_ONCE 6

enum {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    SCAN,
    EXSCAN,
    OPERATIONS
};

static const char *const names[OPERATIONS] = {
    "barrier",  "bcast",     "reduce",    "allreduce", "reduce_scatter", "reduce_scatter_block",
    "gather",   "gatherv",   "scatter",   "scatterv",  "allgather",      "allgatherv",
    "alltoall", "alltoallv", "alltoallw", "scan",      "exscan"};

struct one {
    int operation, which, count, root, in_place;
    const struct kind *kind;
    MPI_Op op;
    MPI_Comm comm;
    int rank, size;
    enum { BLOCKING, NONBLOCKING, PERSISTENT } form;
    MPI_Request request;
    /* The MPI's own, and ours. */
    int status[2];
    int counts[MAX_RANKS], places[MAX_RANKS], total;
    /* The arrays that calls with v or w in their names get. */
    int said_counts[MAX_RANKS], said_places[MAX_RANKS];
    int out_counts[MAX_RANKS], out_places[MAX_RANKS], in_counts[MAX_RANKS], in_places[MAX_RANKS];
    MPI_Datatype types[MAX_RANKS];
    int is_large;
    struct {
        MPI_Count counts[MAX_RANKS], out_counts[MAX_RANKS], in_counts[MAX_RANKS];
        MPI_Aint places[MAX_RANKS], out_places[MAX_RANKS], in_places[MAX_RANKS];
    } large;
    /* Rank i sends table[i][j] elements to rank j in calls of alltoall with v or w. */
    int table[MAX_RANKS][MAX_RANKS];
};

#define FORM_OF(Name, Iname, Init, ...)                                   \
    (one->form == BLOCKING      ? MPI_##Name(__VA_ARGS__)                 \
     : one->form == NONBLOCKING ? MPI_##Iname(__VA_ARGS__, &one->request) \
                                : started(Init(__VA_ARGS__, MPI_INFO_NULL, &one->request), &one->request))
#if MPI_VERSION >= 4
/* In the arguments, the names of arrays mean those of large counts. */
#define LARGE_FORM_OF(name, iname, ...)                                                                   \
    __extension__({                                                                                       \
        MPI_Count *counts = one->large.counts, *out_counts = one->large.out_counts,                       \
                  *in_counts = one->large.in_counts;                                                      \
        MPI_Aint *places = one->large.places, *out_places = one->large.out_places,                        \
                 *in_places = one->large.in_places;                                                       \
        (void)counts, (void)out_counts, (void)in_counts, (void)places, (void)out_places, (void)in_places; \
        FORM_OF(name##_c, I##iname##_c, MPI_##name##_init_c, __VA_ARGS__);                                \
    })
#else
#define LARGE_FORM_OF(name, iname, ...) MPI_ERR_OTHER
#endif
#define CALL(name, iname, ...)                                 \
    (!ours           ? NATIVE(name)(__VA_ARGS__)               \
     : one->is_large ? LARGE_FORM_OF(name, iname, __VA_ARGS__) \
                     : FORM_OF(name, I##iname, INIT(name), __VA_ARGS__))

static int started(int status, MPI_Request *request) { return status ? status : MPI_Start(request); }

/* MPICH 4.0.2's own reduce crashes in place where the root is not rank 0. In reverse it adds up wrongly where
 * two nodes have unlike numbers of ranks. */
static int reduce_by_hand(const struct one *one, const char *from, char *into)
{
    size_t bytes = (size_t)one->count * (size_t)one->kind->extent;
    char *all = malloc(bytes * (size_t)one->size + 1);
    int counts[MAX_RANKS], places[MAX_RANKS];
    for (int i = 0; i < one->size; i++)
        counts[i] = one->count, places[i] = i * one->count;
    int status = NATIVE(Gatherv)(from, one->count, one->kind->type, all, counts, places, one->kind->type,
                                 one->root, one->comm);
    if (one->rank == one->root) {
        for (int i = one->size - 2; i >= 0; i--)
            NATIVE(Reduce_local)(all + bytes * (size_t)i, all + bytes * (size_t)(one->size - 1), one->count,
                                 one->kind->type, one->op);
        for (int i = 0; i < one->count; i++)
            memcpy(into + i * one->kind->extent,
                   all + bytes * (size_t)(one->size - 1) + i * one->kind->extent, one->kind->bytes);
    }
    free(all);
    return status;
}

static int reduces(int operation)
{
    return operation == REDUCE || operation == ALLREDUCE || operation == REDUCE_SCATTER ||
           operation == REDUCE_SCATTER_BLOCK || operation == SCAN || operation == EXSCAN;
}

/* One rank may describe nothing by another datatype than the others do. */
static MPI_Datatype type_of(const struct one *one)
{
    int any_elements = one->count > 0 || one->operation == ALLTOALLV || one->operation == ALLTOALLW;
    return any_elements || reduces(one->operation) || one->rank != one->root ? one->kind->type : huge;
}

/* Fills the arrays that calls with v or w in their names get. */
static void say_blocks(struct one *one, MPI_Datatype type)
{
    int unit = one->operation == ALLTOALLW ? (int)one->kind->extent : 1;
    memcpy(one->said_counts, one->counts, sizeof one->counts);
    memcpy(one->said_places, one->places, sizeof one->places);
    for (int i = 0, out = 0, in = 0; i < one->size; i++) {
        one->out_counts[i] = one->table[one->rank][i], one->in_counts[i] = one->table[i][one->rank];
        one->out_places[i] = out * unit, one->in_places[i] = in * unit;
        out += one->out_counts[i], in += one->in_counts[i];
        one->types[i] = type;
        one->large.counts[i] = one->counts[i], one->large.places[i] = one->places[i];
        one->large.out_counts[i] = one->out_counts[i], one->large.out_places[i] = one->out_places[i];
        one->large.in_counts[i] = one->in_counts[i], one->large.in_places[i] = one->in_places[i];
    }
}

/* MPICH 4.0.2's own gather and scatter fail ("message truncated", or worse) for 2803 structs of {8: double,
 * 0: 3 chars} on 5 ranks. */
static int gather_by_hand(struct one *one, const char *from, char *into, MPI_Datatype type)
{
    for (int i = 0; i < one->size; i++)
        one->in_counts[i] = one->count, one->in_places[i] = i * one->count;
    return NATIVE(Gatherv)(from, one->count, type, into, one->in_counts, one->in_places, type, one->root,
                           one->comm);
}

static int scatter_by_hand(struct one *one, const char *from, char *into, MPI_Datatype type)
{
    for (int i = 0; i < one->size; i++)
        one->out_counts[i] = one->count, one->out_places[i] = i * one->count;
    return NATIVE(Scatterv)(from, one->out_counts, one->out_places, type, into, one->count, type, one->root,
                            one->comm);
}

/* MPICH 4.0.2's own crashes in place with MPI_DOUBLE_INT. */
static int alltoall_by_hand(struct one *one, char *from, char *into, MPI_Datatype type)
{
    if (one->in_place)
        memcpy(from, into, (size_t)(one->count * one->kind->extent) * (size_t)one->size);
    return NATIVE(Alltoall)(from, one->count, type, into, one->count, type, one->comm);
}

static int call(struct one *one, char *from, char *into, int ours)
{
    MPI_Datatype type = type_of(one);
    int here = one->counts[one->rank], at_root = one->rank == one->root;
    void *in_place = MPI_IN_PLACE;
    int *counts = one->said_counts, *places = one->said_places;
    int *out_counts = one->out_counts, *out_places = one->out_places, *in_counts = one->in_counts,
        *in_places = one->in_places;
    MPI_Datatype *types = one->types;
    say_blocks(one, type);
    switch (one->operation) {
    case BARRIER:
        return ours ? FORM_OF(Barrier, Ibarrier, INIT(Barrier), one->comm) : NATIVE(Barrier)(one->comm);
    case BCAST:
        return CALL(Bcast, bcast, into, one->count, type, one->root, one->comm);
    case REDUCE:
        if (!ours)
            return reduce_by_hand(one, one->in_place && at_root ? into : from, into);
        return CALL(Reduce, reduce, one->in_place && at_root ? in_place : from, into, one->count, type,
                    one->op, one->root, one->comm);
    case ALLREDUCE:
        return CALL(Allreduce, allreduce, one->in_place ? in_place : from, into, one->count, type, one->op,
                    one->comm);
    case REDUCE_SCATTER:
        return CALL(Reduce_scatter, reduce_scatter, one->in_place ? in_place : from, into, counts, type,
                    one->op, one->comm);
    case REDUCE_SCATTER_BLOCK:
        return CALL(Reduce_scatter_block, reduce_scatter_block, one->in_place ? in_place : from, into,
                    one->count, type, one->op, one->comm);
    case GATHER:
        if (!ours)
            return gather_by_hand(one, one->in_place && at_root ? in_place : from, into, type);
        return CALL(Gather, gather, one->in_place && at_root ? in_place : from, one->count, type, into,
                    one->count, type, one->root, one->comm);
    case GATHERV:
        return CALL(Gatherv, gatherv, one->in_place && at_root ? in_place : from, here, type, into, counts,
                    places, type, one->root, one->comm);
    case SCATTER:
        if (!ours)
            return scatter_by_hand(one, from, one->in_place && at_root ? in_place : into, type);
        return CALL(Scatter, scatter, from, one->count, type, one->in_place && at_root ? in_place : into,
                    one->count, type, one->root, one->comm);
    case SCATTERV:
        return CALL(Scatterv, scatterv, from, counts, places, type,
                    one->in_place && at_root ? in_place : into, here, type, one->root, one->comm);
    case ALLGATHER:
        return CALL(Allgather, allgather, one->in_place ? in_place : from, one->count, type, into, one->count,
                    type, one->comm);
    case ALLGATHERV:
        return CALL(Allgatherv, allgatherv, one->in_place ? in_place : from, here, type, into, counts, places,
                    type, one->comm);
    case ALLTOALL:
        if (!ours)
            return alltoall_by_hand(one, from, into, type);
        return CALL(Alltoall, alltoall, one->in_place ? in_place : from, one->count, type, into, one->count,
                    type, one->comm);
    case ALLTOALLV:
        return CALL(Alltoallv, alltoallv, from, out_counts, out_places, type, into, in_counts, in_places,
                    type, one->comm);
    case ALLTOALLW:
        return CALL(Alltoallw, alltoallw, from, out_counts, out_places, types, into, in_counts, in_places,
                    types, one->comm);
    case SCAN:
        return CALL(Scan, scan, one->in_place ? in_place : from, into, one->count, type, one->op, one->comm);
    default:
        return CALL(Exscan, exscan, one->in_place ? in_place : from, into, one->count, type, one->op,
                    one->comm);
    }
}

/* The count is mostly small, sometimes 0, and sometimes so large that it is cut in several segments. */
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
    /* The ranks of a split communicator draw for different sizes, so the root must be one of all. */
    one->root = draw(1000) % one->size;
    one->in_place = draw(3) == 0;
    one->form = draw(3);
    /* Where an MPI does not let others take part in its progress, these forms are its own, and MPICH 4.0.2
     * does not end them. */
    if (!lets_others_progress())
        one->form = BLOCKING;
    one->is_large = draw(3) == 0 && MPI_VERSION >= 4;
    one->request = MPI_REQUEST_NULL;
    /* This communicator may lie on one site, where the MPI's own is called. So it gets nothing that MPICH
     * 4.0.2 does wrong. */
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
        fprintf(stderr,
                "rank %d: case %d, %s: %s, form %d, communicator %d, %d of %s, root %d, in place %d\n", rank,
                number, ours ? "causeway" : "native", names[one->operation], one->form, one->which,
                one->count, one->kind->name, one->root, one->in_place);
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
    MPI_Request requests[MAX_AT_ONCE];
    MPI_Status statuses[MAX_AT_ONCE];
    int rank, flag = 0, which;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < many; i++)
        requests[i] = some[i].request;
    /* In a world of several MPIs its library asks MPICH with MPI_Testany, which gives a persistent collective
     * operation of MPICH's own again and again. */
    int way = (rank + many) % 4;
    switch (way == 3 && in_world() ? 1 : way) {
    case 0:
        MPI_Waitall(many, requests, statuses);
        break;
    case 1:
        for (int i = many - 1; i >= 0; i--)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
    case 2:
        /* MPI_Testall is not used: MPICH 5.0.2 finds errors of others in its own persistent collectives. */
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

/* Compares what both have found, and frees the memory. */
static int compare(const struct one *one, struct memory memory[2][2], int number, uint64_t seed, int rank)
{
    int statuses = one->status[0] != one->status[1], differs = statuses;
    for (int i = 0; i < 2; i++)
        differs |= memcmp(memory[0][i].all, memory[1][i].all, memory[0][i].bytes) != 0;
    /* MPI leaves undefined what these ranks get. */
    if (one->operation == EXSCAN && one->rank == 0)
        differs = statuses;
    if (one->operation == REDUCE_SCATTER && one->in_place)
        differs = statuses ||
                  memcmp(memory[0][1].at, memory[1][1].at, one->counts[one->rank] * one->kind->extent) != 0;
    if (one->operation == REDUCE_SCATTER_BLOCK && one->in_place)
        differs = statuses || memcmp(memory[0][1].at, memory[1][1].at, one->count * one->kind->extent) != 0;
    if ((one->operation == REDUCE && one->in_place && one->rank == one->root) ||
        (one->operation == ALLTOALL && one->in_place))
        differs = statuses || memcmp(memory[0][1].all, memory[1][1].all, memory[0][1].bytes) != 0;
    if (differs)
        fprintf(stderr,
                "rank %d: case %d of seed %llu: %s, form %d, communicator %d, %d of %s, op %d, root %d%s: "
                "statuses %d %d\n",
                rank, number, (unsigned long long)seed, names[one->operation], one->form, one->which,
                one->count, one->kind->name, (int)(one->op == one->kind->ops[1]), one->root,
                one->in_place ? ", in place" : "", one->status[0], one->status[1]);
    for (int ours = 0; ours < 2; ours++)
        for (int i = 0; i < 2; i++)
            free(memory[ours][i].all);
    return differs;
}

/* What has been done, which rank 0 prints. */
struct account {
    int cases, replaced, done[OPERATIONS], forms[3];
};

static int64_t crossed_messages(void)
{
    struct {
        int64_t messages, bytes;
    } crossed;
    ((void (*)(void *))dlsym(RTLD_DEFAULT, CROSSINGS))(&crossed);
    int64_t all = 0;
    NATIVE(Allreduce)(&crossed.messages, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Does as many cases as are under way at a time. Returns whether any differs. */
static int do_some(struct account *account, uint64_t seed, int rank)
{
    static struct one some[MAX_AT_ONCE];
    static struct memory memory[MAX_AT_ONCE][2][2];
    int many = draw(3) ? 1 : 2 + (int)draw(MAX_AT_ONCE - 1), differs = 0;
    for (int i = 0; i < many; i++)
        draw_one(&some[i]);
    for (int ours = 0; ours < 2; ours++) {
        for (int i = 0; i < many; i++)
            begin(&some[i], memory[i][ours], account->cases + i, rank, ours);
        end(some, many);
    }
    for (int i = 0; i < many; i++, account->cases++) {
        differs |= compare(&some[i], memory[i], account->cases, seed, rank);
        account->done[some[i].operation]++;
        account->forms[some[i].form]++;
    }
    return differs;
}

static void tell(const struct account *account, const struct extent *extent, uint64_t seed, int wrong,
                 int64_t messages, int64_t growth)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("%d cases of seed %llu on %d ranks: %s; %lld messages between sites\n", account->cases,
           (unsigned long long)seed, size, wrong ? "DIFFERENT" : "the same", (long long)messages);
    for (int i = 0; i < OPERATIONS; i++)
        printf("  %s %d\n", names[i], account->done[i]);
    printf("  (blocking %d, non-blocking %d, persistent %d)\n", account->forms[BLOCKING],
           account->forms[NONBLOCKING], account->forms[PERSISTENT]);
    if (extent->seconds)
        printf("in %d s %d communicators were replaced; memory grew by %lld kB%s\n", extent->seconds,
               account->replaced, (long long)growth / 1024,
               growth > MAX_GROWTH_BYTES ? ", WHICH IS TOO MUCH" : "");
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, phase = WARMING;
    int64_t warm_bytes = 0;
    struct account account = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct extent extent = extent_of(argc > 1 ? argv[1] : "1000");
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (!dlsym(RTLD_DEFAULT, CROSSINGS) || size > MAX_RANKS) {
        fprintf(stderr, "compare: %s\n",
                size > MAX_RANKS ? "too many ranks" : "the library is not preloaded");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    make_kinds();
    make_communicators(rank, size);
    while (account.cases < extent.cases && phase != OVER && !wrong) {
        state = (seed * 1000003ULL + account.cases + 1) * 0x9e3779b97f4a7c15ULL | 1;
        draw(2);
        if (extent.seconds && draw(4) == 0)
            replace_communicator(), account.replaced++;
        int differs = do_some(&account, seed, rank);
        int own[2] = {differs, phase_of(&extent, rank)}, all[2];
        NATIVE(Allreduce)(own, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        wrong = all[0];
        if (phase == WARMING && all[1] != WARMING)
            warm_bytes = resident_bytes();
        phase = all[1];
    }
    int64_t growth = extent.seconds ? resident_bytes() - warm_bytes : 0, most_growth;
    NATIVE(Allreduce)(&growth, &most_growth, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    int64_t messages = crossed_messages();
    if (rank == 0)
        tell(&account, &extent, seed, wrong, messages, most_growth);
    wrong |= rank == 0 && messages == 0;
    wrong |= most_growth > MAX_GROWTH_BYTES;
    free_communicators();
    MPI_Finalize();
    return wrong;
}
