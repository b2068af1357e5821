/* forms: every collective operation in its blocking, non-blocking and persistent form, against values that
 * are known beforehand: random layouts, blocks of unlike length, in place too, on communicators within a site
 * and over sites, and on intercommunicators. Nothing may be written beside the data.
 *
 * forms CASES [SEED [list|all]]: with "list" it goes on after an error, and lists what was wrong; with "all"
 * it also does what an MPI is known to do wrong by itself. */
#include "../native.h"

#include "forms.h"

enum { WORLD_DUP, WORLD_REVERSED, SITE, SITE_REVERSED, SITE_GROUPS, WORLD_GROUPS, COMMUNICATORS };
enum { MOST_BYTES = 1 << 22 };

static const char *const names[OPERATIONS] = {
    "Barrier",   "Bcast",     "Gather",     "Gatherv",        "Scatter",
    "Scatterv",  "Allgather", "Allgatherv", "Alltoall",       "Alltoallv",
    "Alltoallw", "Reduce",    "Allreduce",  "Reduce_scatter", "Reduce_scatter_block",
    "Scan",      "Exscan"};
static const char *const form_names[] = {"blocking", "non-blocking", "persistent"};
static const char *const comm_names[COMMUNICATORS] = {
    "the world",       "the world reversed",   "a site",
    "a site reversed", "groups within a site", "groups over sites"};

static MPI_Comm comms[COMMUNICATORS];

/* A form of an operation, begun and completed. */
#define FORM(Name, Iname, ...)                                            \
    (one->form == BLOCKING      ? MPI_##Name(__VA_ARGS__)                 \
     : one->form == NONBLOCKING ? ended(MPI_##Iname(__VA_ARGS__, &r), &r) \
                                : started(INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &r), &r))

static int ended(int status, MPI_Request *request)
{
    return status ? status : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Twice: the second time finds the same. */
static int started(int status, MPI_Request *request)
{
    if (status == MPI_SUCCESS)
        status = MPI_Start(request);
    status = ended(status, request);
    if (*request != MPI_REQUEST_NULL)
        MPI_Request_free(request);
    return status;
}

static int call(const struct one *one, struct side *out, struct side *in)
{
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Comm comm = one->comm;
    const void *from = out->at;
    void *into = in->at;
    int at_root = one->is_root, root = one->said_root, count = one->count;
    MPI_Datatype type = one->kind->type;
    if (one->in_place && one->operation != SCATTER && one->operation != SCATTERV)
        from = MPI_IN_PLACE;
    if (one->in_place && (one->operation == SCATTER || one->operation == SCATTERV))
        into = MPI_IN_PLACE;
    switch (one->operation) {
    case BARRIER:
        return FORM(Barrier, Ibarrier, comm);
    case BCAST:
        return FORM(Bcast, Ibcast, at_root ? out->at : into, count, type, root, comm);
    case GATHER:
        return FORM(Gather, Igather, from, count, type, into, count, type, root, comm);
    case GATHERV:
        return FORM(Gatherv, Igatherv, from, out->counts[0], type, into, in->counts, in->starts, type, root,
                    comm);
    case SCATTER:
        return FORM(Scatter, Iscatter, from, count, type, into, count, type, root, comm);
    case SCATTERV:
        return FORM(Scatterv, Iscatterv, from, out->counts, out->starts, type, into, in->counts[0], type,
                    root, comm);
    case ALLGATHER:
        return FORM(Allgather, Iallgather, from, count, type, into, count, type, comm);
    case ALLGATHERV:
        return FORM(Allgatherv, Iallgatherv, from, out->counts[0], type, into, in->counts, in->starts, type,
                    comm);
    case ALLTOALL:
        return FORM(Alltoall, Ialltoall, from, count, type, into, count, type, comm);
    case ALLTOALLV:
        return FORM(Alltoallv, Ialltoallv, from, out->counts, out->starts, type, into, in->counts, in->starts,
                    type, comm);
    case ALLTOALLW:
        return FORM(Alltoallw, Ialltoallw, from, out->counts, out->starts, out->types, into, in->counts,
                    in->starts, in->types, comm);
    case REDUCE:
        return FORM(Reduce, Ireduce, from, into, count, type, one->op, root, comm);
    case ALLREDUCE:
        return FORM(Allreduce, Iallreduce, from, into, count, type, one->op, comm);
    case REDUCE_SCATTER:
        return FORM(Reduce_scatter, Ireduce_scatter, from, into, in->counts, type, one->op, comm);
    case REDUCE_SCATTER_BLOCK:
        return FORM(Reduce_scatter_block, Ireduce_scatter_block, from, into, count, type, one->op, comm);
    case SCAN:
        return FORM(Scan, Iscan, from, into, count, type, one->op, comm);
    default:
        return FORM(Exscan, Iexscan, from, into, count, type, one->op, comm);
    }
}

/* What MPICH does wrong by itself, where the program's form is the MPI's own. In place it sends each peer the
 * wrong part by Ialltoallw (before 4.2) and reduces wrongly, or dies, where the root is not rank 0 (before
 * 4.1); Ibcast of an intercommunicator spreads what rank number `root` of the receivers has. */
static int is_wrong_natively(const struct one *one, int which)
{
#if defined(MPICH_NUMVERSION)
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    /* Intel MPI, which MPICH's headers serve, is as its older versions. */
    int number = strstr(version, "Intel") ? 40000000 : MPICH_NUMVERSION;
    int is_own = !in_world() || which == SITE || which == SITE_REVERSED || which == SITE_GROUPS;
    if (one->operation == BCAST && one->is_inter)
        return is_own && one->form != BLOCKING;
    if (one->operation == ALLTOALLW && one->everywhere_in_place)
        return is_own && one->form != BLOCKING && number < 40200000;
    return one->operation == REDUCE && one->everywhere_in_place && one->form == BLOCKING && !in_world() &&
           number < 40100000;
#else
    (void)one, (void)which;
    return 0;
#endif
}

static void draw_one(struct one *one, int which)
{
    static const int counts[] = {0, 1, 2, 5, 40, 700, 9000};
    *one = (struct one){.comm = comms[which], .operation = (int)draw(OPERATIONS), .form = (int)draw(3)};
    int count = (int)draw(7), kind = (int)draw(KINDS), in_place = draw(3) == 0, root = (int)draw(1 << 20);
    uint64_t seed = state;
    one_place(one, root);
    int is_reduction = one->operation >= REDUCE;
    one->kind = is_reduction ? &sums[kind % SUMS] : &kinds[kind];
    one->op = is_reduction ? sums[kind % SUMS].op : MPI_OP_NULL;
    one->count = counts[count];
    while ((int64_t)(one->count + 4) * one->kind->extent * (one->size + one->peers) > MOST_BYTES)
        one->count /= 2;
    int may_be_in_place =
        one->operation > BCAST && ((one->operation > SCATTERV && one->operation != REDUCE) || one->is_root);
    one->in_place = in_place && !one->is_inter && may_be_in_place;
    one->everywhere_in_place = in_place && !one->is_inter && one->operation > BCAST;
    if (one->is_inter && one->operation >= SCAN)
        one->operation = ALLREDUCE;
    state = seed;
}

/* Returns how many faults there are. */
static int do_one(struct one *one)
{
    struct side out, in;
    one_lay_out(one, &out, &in);
    int status = call(one, &out, &in);
    int faults = status != MPI_SUCCESS ? 1 : one_check(one, &out, &in);
    side_free(&out);
    side_free(&in);
    return faults;
}

static void make_comms(void)
{
    int here, own;
    MPI_Comm half;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[WORLD_DUP]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[WORLD_REVERSED]);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comms[SITE]);
    MPI_Comm_size(comms[SITE], &here);
    MPI_Comm_rank(comms[SITE], &own);
    MPI_Comm_split(comms[SITE], 0, -own, &comms[SITE_REVERSED]);
    for (int over = 0; over < 2; over++) {
        MPI_Comm all = over ? MPI_COMM_WORLD : comms[SITE];
        int number = over ? rank : own, of = over ? size : here;
        comms[SITE_GROUPS + over] = MPI_COMM_NULL;
        if (of < 2)
            continue;
        MPI_Comm_split(all, number % 2, number, &half);
        MPI_Intercomm_create(half, 0, all, 1 - number % 2, 5, &comms[SITE_GROUPS + over]);
        MPI_Comm_free(&half);
    }
    for (int i = 0; i < COMMUNICATORS; i++)
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
}

/* What was wrong, by operation, form, in place or not, and communicator. */
static int found[OPERATIONS][3][2][COMMUNICATORS], done[OPERATIONS][3][2][COMMUNICATORS];

static void list(void)
{
    int *all = &found[0][0][0][0], sum[OPERATIONS * 6 * COMMUNICATORS];
    PMPI_Allreduce(all, sum, OPERATIONS * 6 * COMMUNICATORS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < OPERATIONS * 6 * COMMUNICATORS; i++)
        if (sum[i])
            printf("wrong: %s, %s%s, on %s: %d of %d\n", names[i / (6 * COMMUNICATORS)],
                   form_names[i / (2 * COMMUNICATORS) % 3], i / COMMUNICATORS % 2 ? ", in place" : "",
                   comm_names[i % COMMUNICATORS], sum[i], (&done[0][0][0][0])[i]);
}

static void tell(const struct one *one, int number, uint64_t seed, int which, const char *what)
{
    fprintf(stderr, "rank %d: case %d of seed %llu: %s, %s, %d of %s on %s, root %d%s%s\n", rank, number,
            (unsigned long long)seed, names[one->operation], form_names[one->form], one->count,
            one->kind->name, comm_names[which], one->root, one->in_place ? ", in place" : "", what);
}

/* FORMS_TELL in the environment: each case is told before it is done. */
static void try_one(int number, uint64_t seed, int does_all)
{
    struct one one;
    state = (seed * 1000003 + (uint64_t)number) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    draw(2);
    int which = (int)draw(COMMUNICATORS);
    if (comms[which] == MPI_COMM_NULL)
        return;
    draw_one(&one, which);
    if (!does_all && is_wrong_natively(&one, which))
        return;
    if (getenv("FORMS_TELL"))
        tell(&one, number, seed, which, "");
    int is_wrong = do_one(&one) != 0;
    done[one.operation][one.form][one.everywhere_in_place][which]++;
    found[one.operation][one.form][one.everywhere_in_place][which] += is_wrong;
    wrong += is_wrong;
    if (is_wrong)
        tell(&one, number, seed, which, ": wrong");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int cases = argc > 1 ? atoi(argv[1]) : 1000, any = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int goes_on = argc > 3, does_all = goes_on && !strcmp(argv[3], "all");
    make_kinds();
    make_comms();
    for (int i = 0; i < cases && (goes_on || !any); i++) {
        try_one(i, seed, does_all);
        PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    list();
    return end("forms");
}
