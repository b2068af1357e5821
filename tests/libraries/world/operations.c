/* operations: every blocking collective operation against values that are known beforehand, on the world, its
 * reverse, its odd and even halves, with each root, in place too, and a reduction whose order matters. */
#include "world_test.h"

enum { COUNT = 5, MOST = 64 };

static MPI_Comm comm;
static int mine, all;

/* Element i that rank `of` gives to rank `to`. */
static int value(int of, int to, int i) { return 10000 * of + 100 * to + i; }

static void barrier_and_bcast(void)
{
    for (int root = 0; root < all; root++) {
        int data[COUNT];
        for (int i = 0; i < COUNT; i++)
            data[i] = mine == root ? value(root, 0, i) : -1;
        MPI_Bcast(data, COUNT, MPI_INT, root, comm);
        for (int i = 0; i < COUNT; i++)
            CHECK(data[i] == value(root, 0, i));
        MPI_Barrier(comm);
    }
}

static void gathers(int root, int in_place)
{
    int out[COUNT], in[MOST * COUNT], counts[MOST], starts[MOST];
    memset(in, -1, sizeof in);
    for (int i = 0; i < COUNT; i++) {
        out[i] = value(mine, 0, i);
        in[mine * COUNT + i] = out[i];
    }
    const void *send = in_place && mine == root ? MPI_IN_PLACE : out;
    MPI_Gather(send, COUNT, MPI_INT, in, COUNT, MPI_INT, root, comm);
    for (int i = 0; i < all * COUNT && mine == root; i++)
        CHECK(in[i] == value(i / COUNT, 0, i % COUNT));
    /* Rank i gives i % COUNT elements, the last rank's first. */
    for (int i = all - 1, at = 0; i >= 0; at += counts[i], i--)
        counts[i] = i % COUNT, starts[i] = at;
    memset(in, -1, sizeof in);
    memcpy(in + starts[mine], out, (size_t)counts[mine] * sizeof(int));
    MPI_Gatherv(send, mine % COUNT, MPI_INT, in, counts, starts, MPI_INT, root, comm);
    for (int i = 0; i < all && mine == root; i++)
        for (int k = 0; k < counts[i]; k++)
            CHECK(in[starts[i] + k] == value(i, 0, k));
}

static void scatters(int root, int in_place)
{
    int out[MOST * COUNT], in[COUNT], counts[MOST], starts[MOST];
    memset(in, -1, sizeof in);
    for (int i = 0; i < all * COUNT; i++)
        out[i] = value(mine, i / COUNT, i % COUNT);
    void *receive = in_place && mine == root ? MPI_IN_PLACE : in;
    MPI_Scatter(out, COUNT, MPI_INT, receive, COUNT, MPI_INT, root, comm);
    for (int i = 0; i < COUNT && receive == in; i++)
        CHECK(in[i] == value(root, mine, i));
    for (int i = 0; i < all; i++)
        counts[i] = (i + 1) % COUNT, starts[i] = i * COUNT;
    memset(in, -1, sizeof in);
    MPI_Scatterv(out, counts, starts, MPI_INT, receive, (mine + 1) % COUNT, MPI_INT, root, comm);
    for (int i = 0; i < COUNT && receive == in; i++)
        CHECK(in[i] == (i < (mine + 1) % COUNT ? value(root, mine, i) : -1));
}

static void allgathers(int in_place)
{
    int out[COUNT], in[MOST * COUNT], counts[MOST], starts[MOST];
    memset(in, -1, sizeof in);
    for (int i = 0; i < COUNT; i++) {
        out[i] = value(mine, 0, i);
        in[mine * COUNT + i] = out[i];
    }
    const void *send = in_place ? MPI_IN_PLACE : out;
    MPI_Allgather(send, COUNT, MPI_INT, in, COUNT, MPI_INT, comm);
    for (int i = 0; i < all * COUNT; i++)
        CHECK(in[i] == value(i / COUNT, 0, i % COUNT));
    for (int i = 0; i < all; i++)
        counts[i] = 1 + i % (COUNT - 1), starts[i] = (all - 1 - i) * COUNT;
    memset(in, -1, sizeof in);
    memcpy(in + starts[mine], out, (size_t)counts[mine] * sizeof(int));
    MPI_Allgatherv(send, counts[mine], MPI_INT, in, counts, starts, MPI_INT, comm);
    for (int i = 0; i < all; i++)
        for (int k = 0; k < COUNT; k++)
            CHECK(in[starts[i] + k] == (k < counts[i] ? value(i, 0, k) : -1));
}

static void check_exchange(const int *in)
{
    for (int i = 0; i < all * COUNT; i++)
        CHECK(in[i] == value(i / COUNT, mine, i % COUNT));
}

static void alltoalls(int in_place)
{
    int out[MOST * COUNT], in[MOST * COUNT], counts[MOST], starts[MOST], bytes[MOST];
    MPI_Datatype types[MOST];
    for (int i = 0; i < all; i++) {
        counts[i] = COUNT, starts[i] = i * COUNT, bytes[i] = i * COUNT * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    for (int form = 0; form < 3; form++) {
        for (int i = 0; i < all * COUNT; i++) {
            out[i] = value(mine, i / COUNT, i % COUNT);
            in[i] = in_place ? out[i] : -1;
        }
        const void *send = in_place ? MPI_IN_PLACE : out;
        if (form == 0)
            MPI_Alltoall(send, COUNT, MPI_INT, in, COUNT, MPI_INT, comm);
        else if (form == 1)
            MPI_Alltoallv(send, counts, starts, MPI_INT, in, counts, starts, MPI_INT, comm);
        else
            MPI_Alltoallw(send, counts, bytes, types, in, counts, bytes, types, comm);
        check_exchange(in);
    }
}

/* Composes functions x -> a x + b (mod 2^32), which does not commute: in (a, b) stands left of inout. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    const uint32_t *left = in;
    uint32_t *right = inout;
    for (int i = 0; i < *count; i++, left += 2, right += 2) {
        uint32_t a = left[0] * right[0], b = left[0] * right[1] + left[1];
        right[0] = a, right[1] = b;
    }
}

static void own_function(int of, int i, uint32_t *pair)
{
    pair[0] = (uint32_t)(3 + 2 * of + i), pair[1] = (uint32_t)(7 * of + 5 * i + 1);
}

/* What ranks first to last make together. */
static void expected(int first, int last, int i, uint32_t *pair)
{
    own_function(last, i, pair);
    for (int of = last - 1; of >= first; of--) {
        uint32_t left[2];
        int one = 1;
        own_function(of, i, left);
        compose(left, pair, &one, NULL);
    }
}

static void check_function(const uint32_t *got, int last, int i)
{
    uint32_t pair[2];
    expected(0, last, i, pair);
    CHECK(got[0] == pair[0] && got[1] == pair[1]);
}

static void fill(uint32_t *pairs, int count)
{
    for (int i = 0; i < count; i++)
        own_function(mine, i, pairs + 2 * i);
}

static void reduce_everywhere(MPI_Datatype type, MPI_Op op, int in_place)
{
    uint32_t out[2 * COUNT], in[2 * COUNT];
    for (int root = 0; root < all; root++) {
        fill(out, COUNT), fill(in, COUNT);
        MPI_Reduce(in_place && mine == root ? MPI_IN_PLACE : out, in, COUNT, type, op, root, comm);
        for (int i = 0; i < COUNT && mine == root; i++)
            check_function(in + 2 * i, all - 1, i);
    }
    fill(out, COUNT), fill(in, COUNT);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : out, in, COUNT, type, op, comm);
    for (int i = 0; i < COUNT; i++)
        check_function(in + 2 * i, all - 1, i);
    fill(out, COUNT), fill(in, COUNT);
    MPI_Scan(in_place ? MPI_IN_PLACE : out, in, COUNT, type, op, comm);
    for (int i = 0; i < COUNT; i++)
        check_function(in + 2 * i, mine, i);
    fill(out, COUNT), fill(in, COUNT);
    MPI_Exscan(in_place ? MPI_IN_PLACE : out, in, COUNT, type, op, comm);
    for (int i = 0; i < COUNT && mine > 0; i++)
        check_function(in + 2 * i, mine - 1, i);
}

static void reduce_and_scatter(MPI_Datatype type, MPI_Op op, int in_place)
{
    uint32_t out[2 * MOST * COUNT], in[2 * MOST * COUNT];
    int counts[MOST], start = 0, total = 0;
    for (int i = 0; i < all; i++) {
        counts[i] = i % COUNT;
        start += i < mine ? counts[i] : 0;
        total += counts[i];
    }
    fill(out, all * COUNT), fill(in, all * COUNT);
    MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : out, in, COUNT, type, op, comm);
    for (int i = 0; i < COUNT; i++)
        check_function(in + 2 * i, all - 1, mine * COUNT + i);
    fill(out, total), fill(in, total);
    MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : out, in, counts, type, op, comm);
    for (int i = 0; i < counts[mine]; i++)
        check_function(in + 2 * i, all - 1, start + i);
}

static void reductions(int in_place)
{
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(compose, 0, &op);
    reduce_everywhere(type, op, in_place);
    reduce_and_scatter(type, op, in_place);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    double x = mine + 1, sum = 0;
    MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(sum == all * (all + 1) / 2.0);
    struct {
        double value;
        int place;
    } least = {(double)((mine + 1) % all), mine}, found;
    MPI_Allreduce(&least, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    CHECK(found.value == 0 && found.place == all - 1);
}

static void operations_on(MPI_Comm on)
{
    comm = on;
    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &all);
    barrier_and_bcast();
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int root = 0; root < all; root++) {
            gathers(root, in_place);
            scatters(root, in_place);
        }
        allgathers(in_place);
        alltoalls(in_place);
        reductions(in_place);
    }
}

/* Long data, so that it does not go at once. */
static void long_data(void)
{
    enum { INTS = 300000 };
    int *out = malloc(INTS * sizeof *out), *in = malloc(INTS * sizeof *in);
    for (int i = 0; i < INTS; i++)
        out[i] = rank + i;
    MPI_Allreduce(out, in, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < INTS; i++)
        CHECK(in[i] == size * (size - 1) / 2 + size * i);
    MPI_Bcast(out, INTS, MPI_INT, size - 1, MPI_COMM_WORLD);
    CHECK(out[0] == size - 1 && out[INTS - 1] == size - 1 + INTS - 1);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    MPI_Comm reversed, half;
    begin(&argc, &argv);
    operations_on(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    operations_on(reversed);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    operations_on(half);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
    long_data();
    return end("operations");
}
