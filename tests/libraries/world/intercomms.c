/* intercomms: intercommunicators of groups within sites and over them: messages, collective operations in
 * both directions, duplicates, splits, merges, and what is asked of them. */
#include "world_test.h"

enum { MOST = 64 };

/* The group of each rank of the world, 0 or 1, or -1; and what follows for this one. */
struct sides {
    int of[MOST], local[MOST], remote[MOST], mine, size, remote_size, me;
};

static void divide(struct sides *sides, int (*group_of)(int))
{
    memset(sides, 0, sizeof *sides);
    sides->me = -1;
    sides->mine = group_of(rank);
    for (int i = 0; i < size; i++) {
        sides->of[i] = group_of(i);
        if (sides->of[i] < 0)
            continue;
        if (i == rank)
            sides->me = sides->size;
        if (sides->of[i] == sides->mine)
            sides->local[sides->size++] = i;
        else
            sides->remote[sides->remote_size++] = i;
    }
}

static int halves(int of) { return of >= size / 2; }
static int in_turn(int of) { return of % 2; }
static int one_and_others(int of) { return of != 0; }
static int outer_and_inner(int of) { return of > 0 && of < size - 1; }
static int some(int of) { return of == size - 1 ? -1 : of % 2; }

static void check_groups(MPI_Comm inter, const struct sides *s)
{
    MPI_Group world, local, remote;
    int is_inter, n, m, me, from[MOST], to[MOST];
    MPI_Comm_test_inter(inter, &is_inter);
    MPI_Comm_size(inter, &n);
    MPI_Comm_remote_size(inter, &m);
    MPI_Comm_rank(inter, &me);
    CHECK(is_inter && n == s->size && m == s->remote_size && me == s->me);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(inter, &local);
    MPI_Comm_remote_group(inter, &remote);
    for (int i = 0; i < size; i++)
        from[i] = i;
    MPI_Group_translate_ranks(local, n, from, world, to);
    CHECK(!memcmp(to, s->local, (size_t)n * sizeof *to));
    MPI_Group_translate_ranks(remote, m, from, world, to);
    CHECK(!memcmp(to, s->remote, (size_t)m * sizeof *to));
    MPI_Group_free(&world), MPI_Group_free(&local), MPI_Group_free(&remote);
}

/* Everybody sends to everybody of the other group, and receives from any or from each. */
static void messages(MPI_Comm inter, const struct sides *s)
{
    MPI_Request requests[2 * MOST];
    MPI_Status statuses[2 * MOST], status;
    int in[MOST], m = s->remote_size, seen = 0, x, flag = 0;
    for (int i = 0; i < m; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, i, 1, inter, &requests[i]);
    for (int i = 0; i < m; i++)
        MPI_Isend(&rank, 1, MPI_INT, i, 1, inter, &requests[m + i]);
    MPI_Waitall(2 * m, requests, statuses);
    for (int i = 0; i < m; i++)
        CHECK(in[i] == s->remote[i] && statuses[i].MPI_SOURCE == i);
    for (int i = 0; i < m; i++)
        MPI_Isend(&rank, 1, MPI_INT, i, 2, inter, &requests[i]);
    for (int i = 0; i < m; i++) {
        if (i % 2)
            MPI_Probe(MPI_ANY_SOURCE, 2, inter, &status);
        MPI_Recv(&x, 1, MPI_INT, i % 2 ? status.MPI_SOURCE : MPI_ANY_SOURCE, 2, inter, &status);
        CHECK(s->remote[status.MPI_SOURCE] == x);
        seen += x;
    }
    for (int i = 0; i < m; i++)
        seen -= s->remote[i];
    CHECK(seen == 0);
    MPI_Waitall(m, requests, statuses);
    MPI_Sendrecv(&rank, 1, MPI_INT, s->me < m ? s->me : MPI_PROC_NULL, 3, &x, 1, MPI_INT,
                 s->me < m ? s->me : MPI_PROC_NULL, 3, inter, &status);
    CHECK(s->me >= m || x == s->remote[s->me]);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
}

static int sum_of(const int *all, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += all[i];
    return sum;
}

/* Operations with a root, which is any of group 0, then of 1. */
static void rooted(MPI_Comm inter, const struct sides *s, int group, int root)
{
    int is_root = s->mine == group && s->me == root, x = -1, in[MOST], out[MOST], counts[MOST], starts[MOST];
    int to = s->mine != group ? root : is_root ? MPI_ROOT : MPI_PROC_NULL;
    int root_is = s->mine == group ? s->local[root] : s->remote[root];
    for (int i = 0; i < MOST; i++) {
        in[i] = -1;
        out[i] = 100 * rank + i;
        counts[i] = 1;
        starts[i] = MOST - 1 - i;
    }
    if (is_root)
        x = rank;
    MPI_Bcast(&x, 1, MPI_INT, to, inter);
    CHECK(x == (s->mine != group || is_root ? root_is : -1));
    MPI_Gather(&rank, 1, MPI_INT, in, 1, MPI_INT, to, inter);
    CHECK(!is_root || !memcmp(in, s->remote, (size_t)s->remote_size * sizeof *in));
    MPI_Gatherv(&rank, 1, MPI_INT, in, counts, starts, MPI_INT, to, inter);
    for (int i = 0; is_root && i < s->remote_size; i++)
        CHECK(in[starts[i]] == s->remote[i]);
    x = -1;
    MPI_Scatter(out, 1, MPI_INT, &x, 1, MPI_INT, to, inter);
    CHECK(x == (s->mine != group ? 100 * root_is + s->me : -1));
    MPI_Scatterv(out, counts, starts, MPI_INT, &x, 1, MPI_INT, to, inter);
    CHECK(x == (s->mine != group ? 100 * root_is + starts[s->me] : -1));
    x = -1;
    MPI_Reduce(&rank, &x, 1, MPI_INT, MPI_SUM, to, inter);
    CHECK(x == (is_root ? sum_of(s->remote, s->remote_size) : -1));
}

/* Operations in both directions at once. */
static void both_ways(MPI_Comm inter, const struct sides *s)
{
    int in[MOST], out[MOST], counts[MOST], starts[MOST], places[MOST], sum, n = s->size, m = s->remote_size;
    MPI_Datatype types[MOST];
    for (int i = 0; i < MOST; i++) {
        out[i] = 100 * rank + i;
        counts[i] = 1;
        starts[i] = i;
        places[i] = i * (int)sizeof *out;
        types[i] = MPI_INT;
    }
    CHECK(MPI_Barrier(inter) == MPI_SUCCESS);
    MPI_Allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, inter);
    CHECK(!memcmp(in, s->remote, (size_t)m * sizeof *in));
    memset(in, 0xff, sizeof in);
    MPI_Allgatherv(&rank, 1, MPI_INT, in, counts, starts, MPI_INT, inter);
    CHECK(!memcmp(in, s->remote, (size_t)m * sizeof *in));
    for (int kind = 0; kind < 3; kind++) {
        memset(in, 0xff, sizeof in);
        if (kind == 0)
            MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, inter);
        else if (kind == 1)
            MPI_Alltoallv(out, counts, starts, MPI_INT, in, counts, starts, MPI_INT, inter);
        else
            MPI_Alltoallw(out, counts, places, types, in, counts, places, types, inter);
        for (int i = 0; i < m; i++)
            CHECK(in[i] == 100 * s->remote[i] + s->me);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == sum_of(s->remote, m));
    /* n * m numbers in all: n for each of m here, m for each of n there. */
    for (int i = 0; i < n; i++)
        counts[i] = m;
    int whole[MOST * MOST];
    for (int i = 0; i < n * m; i++)
        whole[i] = rank + i;
    for (int kind = 0; kind < 2; kind++) {
        memset(in, 0xff, sizeof in);
        if (kind)
            MPI_Reduce_scatter(whole, in, counts, MPI_INT, MPI_SUM, inter);
        else
            MPI_Reduce_scatter_block(whole, in, m, MPI_INT, MPI_SUM, inter);
        for (int i = 0; i < m; i++)
            CHECK(in[i] == sum_of(s->remote, m) + m * (s->me * m + i));
    }
}

/* Several at once, which do not wait. */
static void pending(MPI_Comm inter, const struct sides *s)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int in[MOST], sum = -1, x = s->mine ? -1 : s->local[0];
    int to = s->mine ? 0 : s->me == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Iallgather(&rank, 1, MPI_INT, in, 1, MPI_INT, inter, &requests[3]);
    MPI_Ibcast(&x, 1, MPI_INT, to, inter, &requests[2]);
    MPI_Ibarrier(inter, &requests[1]);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter, &requests[0]);
    MPI_Waitall(4, requests, statuses);
    CHECK(!memcmp(in, s->remote, (size_t)s->remote_size * sizeof *in));
    CHECK(sum == sum_of(s->remote, s->remote_size));
    CHECK(x == (s->mine ? s->remote[0] : s->local[0]));
}

static void use(MPI_Comm inter, const struct sides *s)
{
    check_groups(inter, s);
    messages(inter, s);
    both_ways(inter, s);
    for (int group = 0; group < 2; group++)
        for (int root = 0; root < (s->mine == group ? s->size : s->remote_size); root++)
            rooted(inter, s, group, root);
}

static void merges(MPI_Comm inter, const struct sides *s)
{
    for (int way = 0; way < 3; way++) {
        MPI_Comm merged;
        /* The same said by both: either order is right. */
        int me, n, all[MOST], high = way == 2 ? 1 : way == s->mine, is_inter;
        MPI_Intercomm_merge(inter, high, &merged);
        MPI_Comm_test_inter(merged, &is_inter);
        MPI_Comm_rank(merged, &me);
        MPI_Comm_size(merged, &n);
        CHECK(!is_inter && n == s->size + s->remote_size);
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, merged);
        const int *mine = all + (me >= s->me + s->remote_size ? s->remote_size : 0);
        CHECK(all[me] == rank && !memcmp(mine, s->local, (size_t)s->size * sizeof *all));
        CHECK(way == 2 || (mine == all) == !high);
        MPI_Comm_free(&merged);
    }
}

static void duplicates(MPI_Comm inter, const struct sides *s)
{
    MPI_Comm copy, again;
    MPI_Request request;
    int result;
    MPI_Comm_dup(inter, &copy);
    MPI_Comm_compare(inter, copy, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_compare(copy, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_UNEQUAL);
    MPI_Comm_idup(copy, &again, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&copy);
    use(again, s);
    MPI_Comm_free(&again);
}

/* Ranks of both groups that say the same number make a new one, in the opposite order. */
static void splits(MPI_Comm inter, const struct sides *s)
{
    MPI_Comm part;
    struct sides half = {.mine = s->mine, .me = -1};
    int color = s->me % 2;
    MPI_Comm_split(inter, color, -s->me, &part);
    for (int i = s->size - 1; i >= 0; i--)
        if (i % 2 == color) {
            if (i == s->me)
                half.me = half.size;
            half.local[half.size++] = s->local[i];
        }
    for (int i = s->remote_size - 1; i >= 0; i--)
        if (i % 2 == color)
            half.remote[half.remote_size++] = s->remote[i];
    CHECK((part == MPI_COMM_NULL) == (half.remote_size == 0));
    if (part != MPI_COMM_NULL) {
        use(part, &half);
        MPI_Comm_free(&part);
    }
    /* The last of each group alone. */
    MPI_Group all, last;
    int place = s->size - 1;
    MPI_Comm_group(inter, &all);
    MPI_Group_incl(all, 1, &place, &last);
    MPI_Comm_create(inter, last, &part);
    CHECK((part != MPI_COMM_NULL) == (s->me == place));
    if (part != MPI_COMM_NULL) {
        struct sides two = {.mine = s->mine, .size = 1, .remote_size = 1};
        two.local[0] = rank;
        two.remote[0] = s->remote[s->remote_size - 1];
        use(part, &two);
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&all), MPI_Group_free(&last);
}

/* The two groups meet over MPI_COMM_WORLD; their leaders are the last of one and the first of the other. */
static void try_groups(int (*group_of)(int), int is_whole)
{
    struct sides s;
    MPI_Comm local, inter;
    divide(&s, group_of);
    MPI_Comm_split(MPI_COMM_WORLD, s.mine < 0 ? MPI_UNDEFINED : s.mine, 0, &local);
    if (s.mine < 0)
        return;
    int leader = s.mine ? s.size - 1 : 0;
    int remote_leader = s.mine ? s.remote[0] : s.remote[s.remote_size - 1];
    MPI_Intercomm_create(local, leader, MPI_COMM_WORLD, remote_leader, 9, &inter);
    MPI_Comm_free(&local);
    use(inter, &s);
    pending(inter, &s);
    if (is_whole) {
        merges(inter, &s);
        duplicates(inter, &s);
        splits(inter, &s);
    }
    MPI_Comm_free(&inter);
    CHECK(inter == MPI_COMM_NULL);
}

/* Both groups within each site, where it has two ranks or more. */
static int first, here;
static int within_the_site(int of) { return of < first || of >= first + here ? -1 : of == first; }

static void within_sites(void)
{
    MPI_Comm site, half, inter;
    int me;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &site);
    MPI_Comm_size(site, &here);
    MPI_Comm_rank(site, &me);
    first = rank - me;
    if (here > 1) {
        struct sides s;
        divide(&s, within_the_site);
        MPI_Comm_split(site, me == 0, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, s.remote[0], 4, &inter);
        check_groups(inter, &s);
        messages(inter, &s);
        MPI_Comm_free(&inter);
        MPI_Intercomm_create(half, 0, site, s.remote[0] - first, 4, &inter);
        merges(inter, &s);
        messages(inter, &s);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    MPI_Comm_free(&site);
}

/* Numbers that processes give communicators are then unlike at each. */
static void drift_apart(void)
{
    MPI_Comm apart;
    MPI_Group world, pair;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 1; i < size; i++) {
        int ranks[2] = {0, i};
        MPI_Group_incl(world, 2, ranks, &pair);
        for (int round = 0; round < i && (rank == 0 || rank == i); round++) {
            MPI_Comm_create_group(MPI_COMM_WORLD, pair, 1, &apart);
            MPI_Comm_free(&apart);
        }
        MPI_Group_free(&pair);
    }
    MPI_Group_free(&world);
}

/* A topology is one group's. */
static void topologies_are_refused(void)
{
    struct sides s;
    MPI_Comm half, inter, made;
    int is_ring = 1, none = 0, n;
    divide(&s, halves);
    MPI_Comm_split(MPI_COMM_WORLD, s.mine, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, s.remote[0], 5, &inter);
    MPI_Comm_size(inter, &n);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK(MPI_Cart_create(inter, 1, &n, &is_ring, 0, &made) != MPI_SUCCESS);
    CHECK(MPI_Graph_create(inter, 1, &none, &none, 0, &made) != MPI_SUCCESS);
    CHECK(MPI_Dist_graph_create(inter, 0, &none, &none, &none, &none, MPI_INFO_NULL, 0, &made) !=
          MPI_SUCCESS);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    drift_apart();
    topologies_are_refused();
    try_groups(halves, 1);
    try_groups(in_turn, 1);
    try_groups(one_and_others, 1);
    if (size > 3) {
        try_groups(outer_and_inner, 1);
        try_groups(some, 1);
    }
    within_sites();
    return end("intercomms");
}
