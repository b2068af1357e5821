/* creations: random programs that make communicators of each other, by every call: several duplicates under
 * way at once on overlapping groups, beside calls that wait and calls of a part of the ranks. Each is used,
 * and freed while others are made.
 *
 * creations PROGRAMS [SEED]: CREATIONS_TELL in the environment has each step told before it is done. */
#include "world_test.h"

enum { MOST = 10, PENDING = 6, MOST_RANKS = 16, STEPS = 24 };

/* A communicator as all ranks know it: its members in the world, by rank. This one may not be in it. */
struct known {
    int size, members[MOST_RANKS];
    MPI_Comm comm;
    /* Its request, while it is a duplicate that is under way. */
    MPI_Request request;
    int is_used, is_pending;
    /* The parent of a duplicate. MPIs die where it is freed meanwhile. */
    const struct known *of;
};

static struct known all[MOST];
/* What each rank does by itself, for example how often it asks. */
static uint64_t own_state;

static unsigned draw_own(unsigned below)
{
    own_state = own_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(own_state >> 33) % below;
}

static int place_of(const struct known *known, int of)
{
    for (int i = 0; i < known->size; i++)
        if (known->members[i] == of)
            return i;
    return -1;
}

static int is_mine(const struct known *known) { return place_of(known, rank) >= 0; }

static void use(const struct known *known)
{
    int mine = -1, many = 0, sum = 0, expected = 0, place = place_of(known, rank), left = -1;
    MPI_Comm_rank(known->comm, &mine);
    MPI_Comm_size(known->comm, &many);
    CHECK(mine == place && many == known->size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, known->comm);
    for (int i = 0; i < known->size; i++)
        expected += known->members[i];
    CHECK(sum == expected);
    MPI_Sendrecv(&rank, 1, MPI_INT, (mine + 1) % many, 4, &left, 1, MPI_INT, (mine + many - 1) % many, 4,
                 known->comm, MPI_STATUS_IGNORE);
    CHECK(left == known->members[(place + known->size - 1) % known->size]);
}

/* A free place, or NULL. */
static struct known *place_new(void)
{
    for (int i = 1; i < MOST; i++)
        if (!all[i].is_used)
            return &all[i];
    return NULL;
}

/* Any communicator that is there. */
static struct known *any(void)
{
    struct known *known;
    do
        known = &all[draw(MOST)];
    while (!known->is_used || known->is_pending);
    return known;
}

static void finish(struct known *known)
{
    known->is_pending = 0;
    if (!is_mine(known))
        return;
    if (draw_own(2)) {
        MPI_Wait(&known->request, MPI_STATUS_IGNORE);
    } else {
        for (int flag = 0; !flag;)
            MPI_Test(&known->request, &flag, MPI_STATUS_IGNORE);
    }
    use(known);
}

static int is_busy(const struct known *known)
{
    int is = known->is_pending;
    for (int i = 0; i < MOST; i++)
        is = is || (all[i].is_pending && all[i].of == known);
    return is;
}

/* All that are under way, by one call. */
static void finish_all(void)
{
    MPI_Request requests[MOST];
    MPI_Status statuses[MOST];
    int count = 0;
    for (int i = 0; i < MOST; i++)
        if (all[i].is_pending && is_mine(&all[i]))
            requests[count++] = all[i].request;
    if (draw_own(2)) {
        MPI_Waitall(count, requests, statuses);
    } else {
        for (int i = 0, index; i < count; i++)
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < MOST; i++)
        if (all[i].is_pending) {
            all[i].is_pending = 0;
            if (is_mine(&all[i]))
                use(&all[i]);
        }
}

static void ask_now_and_then(void)
{
    int flag;
    for (int i = 0; i < MOST; i++)
        if (all[i].is_pending && is_mine(&all[i]) && all[i].request != MPI_REQUEST_NULL && draw_own(3) == 0)
            MPI_Request_get_status(all[i].request, &flag, MPI_STATUS_IGNORE);
}

/* By rank of the world: the first rank of its site. */
static int site_of[MOST_RANKS];

static void learn_sites(void)
{
    MPI_Comm site;
    int first;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &site);
    MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, site);
    MPI_Allgather(&first, 1, MPI_INT, site_of, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Comm_free(&site);
}

/* Open MPI 4.1 and MPICH alone hang now and then where they make several communicators at once: duplicates of
 * unlike ones, and several of one within a site, where all is the MPI's. So what is under way is of one
 * parent.
 */
static void finish_others(const struct known *of)
{
    int is_within = 1;
    for (int i = 1; i < of->size; i++)
        is_within = is_within && site_of[of->members[i]] == site_of[of->members[0]];
    for (int i = 0; i < MOST; i++)
        if (all[i].is_pending && (is_within || all[i].of != of)) {
            finish_all();
            return;
        }
}

static void copy_members(struct known *made, const struct known *of)
{
    made->size = of->size;
    memcpy(made->members, of->members, sizeof of->members);
}

/* Some of the members, in any order; at least one. */
static void choose_members(struct known *made, const struct known *of, int *ranks)
{
    int order[MOST_RANKS] = {0};
    for (int i = 0; i < of->size; i++) {
        int at = (int)draw((unsigned)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    made->size = 1 + (int)draw((unsigned)of->size);
    for (int i = 0; i < made->size; i++) {
        ranks[i] = order[i];
        made->members[i] = of->members[order[i]];
    }
}

static void make_of_group(struct known *made, const struct known *of, int by_group)
{
    MPI_Group group, part;
    int ranks[MOST_RANKS];
    choose_members(made, of, ranks);
    if (!is_mine(of))
        return;
    MPI_Comm_group(of->comm, &group);
    MPI_Group_incl(group, made->size, ranks, &part);
    if (!by_group)
        MPI_Comm_create(of->comm, part, &made->comm);
    else if (is_mine(made))
        MPI_Comm_create_group(of->comm, part, 3, &made->comm);
    MPI_Group_free(&part);
    MPI_Group_free(&group);
}

static void make_split(struct known *made, const struct known *of)
{
    unsigned colors = 1 + draw(of->size < 3 ? (unsigned)of->size : 3), reversed = draw(2);
    int color = place_of(of, rank) % (int)colors, part = (int)draw(colors);
    made->size = 0;
    for (int i = 0; i < of->size; i++) {
        int at = reversed ? of->size - 1 - i : i;
        if (at % (int)colors == part)
            made->members[made->size++] = of->members[at];
    }
    if (!is_mine(of))
        return;
    MPI_Comm mine;
    MPI_Comm_split(of->comm, color, reversed ? of->size - place_of(of, rank) : 0, &mine);
    if (color == part)
        made->comm = mine;
    else
        MPI_Comm_free(&mine);
}

/* Halves, an intercommunicator of them, a duplicate of that, and both as one. */
static void make_merged(struct known *made, const struct known *of)
{
    MPI_Comm half, inter, again;
    MPI_Request request;
    copy_members(made, of);
    if (!is_mine(of))
        return;
    int mine = place_of(of, rank), first = (of->size + 1) / 2, is_second = mine >= first;
    if (of->size < 2) {
        MPI_Comm_dup(of->comm, &made->comm);
        return;
    }
    MPI_Comm_split(of->comm, is_second, mine, &half);
    MPI_Intercomm_create(half, 0, of->comm, is_second ? 0 : first, 9, &inter);
    MPI_Comm_idup(inter, &again, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&inter);
    MPI_Intercomm_merge(again, is_second, &made->comm);
    MPI_Comm_free(&again);
    MPI_Comm_free(&half);
}

static void step(int number)
{
    struct known *made = place_new(), *of = any();
    unsigned what = draw(12);
    if (getenv("CREATIONS_TELL"))
        fprintf(stderr, "rank %d: step %d: %u of communicator %d\n", rank, number, what, (int)(of - all));
    ask_now_and_then();
    if (what == 0) {
        finish_all();
    } else if (what == 1 || !made) {
        struct known *gone = any();
        for (int i = 0; i < MOST && (gone == all || is_busy(gone)); i++)
            gone = &all[i];
        if (gone != all && gone->is_used && !is_busy(gone)) {
            if (is_mine(gone))
                MPI_Comm_free(&gone->comm);
            gone->is_used = 0;
        }
    } else {
        finish_others(of);
        *made = (struct known){.is_used = 1, .comm = MPI_COMM_NULL, .request = MPI_REQUEST_NULL};
        if (what < 6) {
            copy_members(made, of);
            made->is_pending = 1;
            made->of = of;
            if (is_mine(of))
                MPI_Comm_idup(of->comm, &made->comm, &made->request);
            return;
        }
        if (what == 6) {
            copy_members(made, of);
            if (is_mine(of))
                MPI_Comm_dup(of->comm, &made->comm);
        } else if (what == 7) {
            make_split(made, of);
        } else if (what == 8) {
            make_merged(made, of);
        } else {
            make_of_group(made, of, what > 9);
        }
        if (is_mine(made))
            use(made);
    }
}

static void program(uint64_t seed)
{
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    own_state = state + (uint64_t)rank * 977;
    memset(all, 0, sizeof all);
    all[0] = (struct known){.is_used = 1, .size = size, .comm = MPI_COMM_WORLD};
    for (int i = 0; i < size; i++)
        all[0].members[i] = i;
    for (int i = 0; i < STEPS; i++)
        step(i);
    for (int i = 0; i < MOST; i++)
        if (all[i].is_pending && draw(2))
            finish(&all[i]);
    finish_all();
    for (int i = 1; i < MOST; i++)
        if (all[i].is_used && is_mine(&all[i]))
            MPI_Comm_free(&all[i].comm);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    learn_sites();
    int programs = argc > 1 ? atoi(argv[1]) : 20;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (int i = 0; i < programs; i++) {
        if (getenv("CREATIONS_TELL") && rank == 0)
            fprintf(stderr, "program %d of seed %llu\n", i, (unsigned long long)seed);
        program(seed * 1000 + (uint64_t)i);
    }
    return end("creations");
}
