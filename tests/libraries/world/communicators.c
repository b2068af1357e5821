/* communicators: splits, duplicates and groups over sites, each with messages and a sum over it; attributes,
 * comparisons, what is freed while it is used, and what is refused. */
#include "world_test.h"

/* A sum over all, and a message round. */
static void use(MPI_Comm comm)
{
    int mine, all, sum, from_left = -1;
    MPI_Status status;
    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &all);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == all * (all - 1) / 2);
    MPI_Sendrecv(&mine, 1, MPI_INT, (mine + 1) % all, 3, &from_left, 1, MPI_INT, (mine + all - 1) % all, 3,
                 comm, &status);
    CHECK(from_left == (mine + all - 1) % all && status.MPI_SOURCE == from_left);
}

static void splits(void)
{
    MPI_Comm half, reversed, none, again;
    int mine, all, world = -1;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &mine);
    MPI_Comm_size(half, &all);
    CHECK(all == (size + 1 - rank % 2) / 2);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    MPI_Comm_rank(reversed, &mine);
    CHECK(mine == size - 1 - rank);
    world = rank;
    MPI_Bcast(&world, 1, MPI_INT, 0, reversed);
    CHECK(world == size - 1);
    MPI_Comm_split(MPI_COMM_WORLD, rank ? 1 : MPI_UNDEFINED, 0, &none);
    CHECK((none == MPI_COMM_NULL) == (rank == 0));
    use(half);
    use(reversed);
    MPI_Comm_split(reversed, rank / 2, rank, &again);
    use(again);
    MPI_Comm_disconnect(&again);
    CHECK(again == MPI_COMM_NULL);
    if (none != MPI_COMM_NULL) {
        use(none);
        MPI_Comm_free(&none);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
    CHECK(half == MPI_COMM_NULL);
}

/* Many, so that numbers, contexts and early messages meet. */
static void duplicates(void)
{
    MPI_Comm comms[6];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 6; i++)
            MPI_Comm_dup(i ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
        for (int i = 0; i < 6; i++)
            MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 0, comms[i]);
        for (int i = 0; i < 6; i++) {
            int y = -1;
            MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[5 - i], MPI_STATUS_IGNORE);
            CHECK(y == (rank + size - 1) % size);
        }
        for (int i = 0; i < 6; i++)
            MPI_Comm_free(&comms[i]);
    }
}

static void a_communicator_freed_early_serves_its_receives(void)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    int x = rank, in[2] = {-1, -1}, to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Status statuses[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Irecv(&in[0], 1, MPI_INT, from, 1, comm, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &requests[1]);
    MPI_Barrier(comm);
    MPI_Send(&x, 1, MPI_INT, to, 1, comm);
    MPI_Send(&x, 1, MPI_INT, to, 2, comm);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, statuses);
    CHECK(in[0] == from && in[1] == from && statuses[0].MPI_SOURCE == from && statuses[1].MPI_SOURCE == from);
}

static void groups(void)
{
    MPI_Group world, odd, rest, both, back, none;
    MPI_Comm comm;
    int count = 0, *ranks = malloc((size_t)size * sizeof *ranks), result, mine, all, expected;
    for (int i = size - 1; i >= 0; i--)
        if (i % 2)
            ranks[count++] = i;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(world, &all);
    MPI_Group_rank(world, &mine);
    CHECK(all == size && mine == rank);
    MPI_Group_incl(world, count, ranks, &odd);
    MPI_Group_size(odd, &all);
    MPI_Group_rank(odd, &mine);
    expected = rank % 2 ? (size - 1 - rank) / 2 : MPI_UNDEFINED;
    CHECK(all == count && mine == expected);
    MPI_Group_difference(world, odd, &rest);
    MPI_Group_size(rest, &all);
    CHECK(all == size - count);
    MPI_Group_union(rest, odd, &both);
    MPI_Group_compare(both, world, &result);
    CHECK(result == (size > 2 ? MPI_SIMILAR : MPI_IDENT));
    MPI_Group_intersection(both, odd, &back);
    MPI_Group_intersection(rest, odd, &none);
    MPI_Group_size(none, &all);
    CHECK(all == 0);
    int from[2] = {0, MPI_PROC_NULL}, to[2];
    MPI_Group_translate_ranks(odd, 2, from, world, to);
    CHECK(to[0] == ranks[0] && to[1] == MPI_PROC_NULL);
    MPI_Comm_create(MPI_COMM_WORLD, odd, &comm);
    CHECK((comm != MPI_COMM_NULL) == (rank % 2));
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_rank(comm, &mine);
        CHECK(mine == expected);
        use(comm);
        MPI_Comm_free(&comm);
    }
    if (rank % 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, odd, 5, &comm);
        MPI_Comm_rank(comm, &mine);
        CHECK(mine == expected);
        use(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&world), MPI_Group_free(&odd), MPI_Group_free(&rest), MPI_Group_free(&both);
    MPI_Group_free(&back);
    if (none != MPI_GROUP_EMPTY)
        MPI_Group_free(&none);
    free(ranks);
}

static int copies;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static void attributes_and_comparisons(void)
{
    int key, flag, result, *tag_ub, value = 42;
    void *found;
    MPI_Comm dup, reversed;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_get_attr(dup, key, &found, &flag);
    CHECK(flag && found == &value && copies == 1);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
    CHECK(flag && *tag_ub >= 32767);
    int least;
    MPI_Allreduce(tag_ub, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    CHECK(least == *tag_ub);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_IDENT);
    MPI_Comm_compare(MPI_COMM_WORLD, dup, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_compare(MPI_COMM_WORLD, reversed, &result);
    CHECK(result == MPI_SIMILAR);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
    CHECK(result == MPI_UNEQUAL);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&reversed);
}

/* A refusal is an error of the communicator, and nothing has begun. Over one site all works. */
static void refusals(void)
{
    MPI_Comm site;
    int here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &site);
    MPI_Comm_size(site, &here);
    use(site);
    char *base;
    MPI_Win window;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, site, &base, &window);
    MPI_Win_free(&window);
    if (here < size) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        CHECK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window) != MPI_SUCCESS);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Comm_free(&site);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    use(MPI_COMM_WORLD);
    splits();
    duplicates();
    a_communicator_freed_early_serves_its_receives();
    groups();
    attributes_and_comparisons();
    refusals();
    return end("communicators");
}
