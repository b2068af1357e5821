/* unlike: long doubles go between sites, alone and in derived datatypes with other numbers, by messages and
 * by every operation that moves or reduces data. Where the sites' processors keep them in unlike forms, each
 * receiver has to get the same numbers in its own. All long doubles here have 64 bits of significand at most,
 * so that each form holds them; one has more, and is rounded. */
#include "world_test.h"

#include <complex.h>
#include <float.h>
#include <limits.h>

enum { MOST = 16, COUNT = 5, LARGE = 40000 };

struct mixed {
    char before;
    long double number;
    int between;
    long double _Complex pair[2];
    short after;
};
struct located {
    long double value;
    int index;
};

static MPI_Datatype mixed_type, nested_type;

/* More bits than a double has. */
static long double number(int from, int to, int i)
{
    return (long double)(from * 64 + to * 8 + i % 8) + 0x1p-50L * (i % 1000 + 1);
}

static struct mixed mixed(int from, int to, int i)
{
    return (struct mixed){(char)('a' + i % 26),
                          number(from, to, i),
                          i,
                          {number(from, to, i + 1) + number(from, to, i + 2) * I,
                           number(from, to, i + 3) - number(from, to, i + 4) * I},
                          (short)-i};
}

static int is_mixed(const struct mixed *is, int from, int to, int i)
{
    struct mixed wanted = mixed(from, to, i);
    return is->before == wanted.before && is->number == wanted.number && is->between == wanted.between &&
           is->pair[0] == wanted.pair[0] && is->pair[1] == wanted.pair[1] && is->after == wanted.after;
}

/* A struct of all, and every other element of two rows of it. */
static void make_types(void)
{
    MPI_Datatype types[] = {MPI_CHAR, MPI_LONG_DOUBLE, MPI_INT, MPI_C_LONG_DOUBLE_COMPLEX, MPI_SHORT}, packed,
                 row;
    int lengths[] = {1, 1, 1, 2, 1};
    MPI_Aint places[] = {offsetof(struct mixed, before), offsetof(struct mixed, number),
                         offsetof(struct mixed, between), offsetof(struct mixed, pair),
                         offsetof(struct mixed, after)};
    MPI_Type_create_struct(5, lengths, places, types, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(struct mixed), &mixed_type);
    MPI_Type_commit(&mixed_type);
    MPI_Type_vector(2, 1, 2, mixed_type, &row);
    MPI_Type_contiguous(2, row, &nested_type);
    MPI_Type_commit(&nested_type);
    MPI_Type_free(&packed);
    MPI_Type_free(&row);
}

/* Between each two ranks, in each kind of call. */
static void messages(int other)
{
    long double out[COUNT], in[COUNT] = {0};
    struct located located = {number(rank, other, 7), rank}, place = {0};
    struct mixed all[COUNT], got[COUNT] = {0};
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Message message;
    int count = 0;
    for (int i = 0; i < COUNT; i++) {
        out[i] = number(rank, other, i);
        all[i] = mixed(rank, other, i);
    }
    MPI_Sendrecv(out, COUNT, MPI_LONG_DOUBLE, other, 1, in, COUNT, MPI_LONG_DOUBLE, other, 1, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, MPI_LONG_DOUBLE, &count);
    CHECK(count == COUNT);
    for (int i = 0; i < COUNT; i++)
        CHECK(in[i] == number(other, rank, i));
    MPI_Sendrecv_replace(out, COUNT, MPI_LONG_DOUBLE, other, 2, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == number(other, rank, i));
    MPI_Sendrecv(&located, 1, MPI_LONG_DOUBLE_INT, other, 3, &place, 1, MPI_LONG_DOUBLE_INT, other, 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(place.value == number(other, rank, 7) && place.index == other);
    MPI_Irecv(got, COUNT, mixed_type, other, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(all, COUNT, mixed_type, other, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++)
        CHECK(is_mixed(&got[i], other, rank, i));
    /* Fewer than there is room for, by whoever sends, reserved before. */
    memset(got, 0, sizeof got);
    MPI_Isend(all, 2, mixed_type, other, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(got, COUNT, mixed_type, &message, &status);
    MPI_Get_count(&status, mixed_type, &count);
    CHECK(status.MPI_SOURCE == other && count == 2);
    CHECK(is_mixed(&got[0], other, rank, 0) && is_mixed(&got[1], other, rank, 1) && got[2].before == 0);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

/* Four elements of a struct, by a type of types of it. */
static void nested(int other)
{
    struct mixed all[8], got[8] = {0};
    for (int i = 0; i < 8; i++)
        all[i] = mixed(rank, other, i);
    MPI_Sendrecv(all, 1, nested_type, other, 6, got, 4, mixed_type, other, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    /* A row ends with its last element: the second begins where the first has its third. */
    const int sent[] = {0, 2, 3, 5};
    for (int i = 0; i < 4; i++)
        CHECK(is_mixed(&got[i], other, rank, sent[i]));
}

static void rounded(int other)
{
    long double third = 1.0L / 3, most = LDBL_MAX, in[4], out[4] = {third, most, -0.0L, 0x1p-16400L};
    MPI_Sendrecv(out, 4, MPI_LONG_DOUBLE, other, 8, in, 4, MPI_LONG_DOUBLE, other, 8, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    /* What has more bits comes rounded, what has fewer as it is. */
    CHECK(in[0] - third < 0x1p-64L && third - in[0] < 0x1p-64L);
    CHECK(in[1] > 0x1p16383L && in[2] == 0 && 1 / in[2] < 0 && in[3] == 0x1p-16400L);
}

static void moved(int count)
{
    long double *out = malloc((size_t)count * MOST * sizeof *out),
                *in = calloc((size_t)count * MOST, sizeof *in);
    int counts[MOST], starts[MOST];
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < count; i++)
            in[i] = rank == root ? number(root, 1, i) : 0;
        MPI_Bcast(in, count, MPI_LONG_DOUBLE, root, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            CHECK(in[i] == number(root, 1, i));
        for (int i = 0; i < count; i++)
            out[i] = number(rank, root, i);
        MPI_Gather(out, count, MPI_LONG_DOUBLE, in, count, MPI_LONG_DOUBLE, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < count * size; i++)
            CHECK(in[i] == number(i / count, root, i % count));
        for (int i = 0; i < count * size; i++)
            out[i] = number(root, i / count, i % count);
        MPI_Scatter(out, count, MPI_LONG_DOUBLE, in, count, MPI_LONG_DOUBLE, root, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            CHECK(in[i] == number(root, rank, i));
    }
    for (int i = 0; i < size; i++)
        counts[i] = count, starts[i] = i * count;
    for (int i = 0; i < count * size; i++)
        out[i] = number(rank, i / count, i % count);
    MPI_Alltoall(out, count, MPI_LONG_DOUBLE, in, count, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        CHECK(in[i] == number(i / count, rank, i % count));
    MPI_Alltoallv(out, counts, starts, MPI_LONG_DOUBLE, in, counts, starts, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        CHECK(in[i] == number(i / count, rank, i % count));
    MPI_Alltoall(MPI_IN_PLACE, count, MPI_LONG_DOUBLE, out, count, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        CHECK(out[i] == number(i / count, rank, i % count));
    for (int i = 0; i < count; i++)
        out[i] = number(rank, 2, i);
    MPI_Allgather(out, count, MPI_LONG_DOUBLE, in, count, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        CHECK(in[i] == number(i / count, 2, i % count));
    MPI_Allgatherv(out, count, MPI_LONG_DOUBLE, in, counts, starts, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        CHECK(in[i] == number(i / count, 2, i % count));
    free(out);
    free(in);
}

static void moved_mixed(void)
{
    struct mixed all[MOST * COUNT], out[COUNT];
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < COUNT; i++)
            out[i] = rank == root ? mixed(root, 3, i) : (struct mixed){.before = 0};
        MPI_Bcast(out, COUNT, mixed_type, root, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++)
            CHECK(is_mixed(&out[i], root, 3, i));
    }
    for (int i = 0; i < COUNT; i++)
        out[i] = mixed(rank, 4, i);
    memset(all, 0, sizeof all);
    MPI_Allgather(out, COUNT, mixed_type, all, COUNT, mixed_type, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT * size; i++)
        CHECK(is_mixed(&all[i], i / COUNT, 4, i % COUNT));
}

/* Sums of numbers with few bits are the same in any order. */
static long double summand(int of, int i) { return (of + 1) * 0.5L + i % 100 + 0x1p-40L; }

static void add(void *in, void *into, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((long double *)into)[i] += ((long double *)in)[i];
}

static void reduced(int count)
{
    long double *own = malloc((size_t)count * sizeof *own), *sum = calloc((size_t)count, sizeof *sum);
    long double *wanted = calloc((size_t)count, sizeof *wanted), before = 0;
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    for (int i = 0; i < count; i++) {
        own[i] = summand(rank, i);
        for (int of = 0; of < size; of++)
            wanted[i] += summand(of, i);
    }
    MPI_Allreduce(own, sum, count, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        CHECK(sum[i] == wanted[i]);
    for (int root = 0; root < size; root++) {
        memset(sum, 0, (size_t)count * sizeof *sum);
        MPI_Reduce(own, sum, count, MPI_LONG_DOUBLE, root % 2 ? op : MPI_SUM, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < count; i++)
            CHECK(sum[i] == wanted[i]);
    }
    MPI_Scan(own, sum, count, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int of = 0; of <= rank; of++)
        before += summand(of, 0);
    CHECK(sum[0] == before);
    if (count % size == 0) {
        MPI_Reduce_scatter_block(own, sum, count / size, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count / size; i++)
            CHECK(sum[i] == wanted[rank * (count / size) + i]);
    }
    MPI_Op_free(&op);
    free(own);
    free(sum);
    free(wanted);
}

static void located(void)
{
    struct located own = {number(rank, 0, rank), rank}, most = {0};
    long double _Complex pair = rank + 1 + 0x1p-50L * I, product = 0;
    MPI_Allreduce(&own, &most, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(most.index == size - 1 && most.value == number(size - 1, 0, size - 1));
    MPI_Allreduce(&pair, &product, 1, MPI_C_LONG_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    CHECK(creall(product) == size * (size + 1) / 2 && cimagl(product) == size * 0x1p-50L);
}

/* What no site knows to convert is refused where processors are unlike: characters that have a sign at some
 * sites alone have no greatest one, and packed bytes do not tell which of them are numbers. */
static void refused(void)
{
    int has_sign = CHAR_MIN < 0, signs = 0;
    int is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, bigs = 0;
    char own = (char)-1, most = 0;
    signed char number = (signed char)-rank, least = 0;
    struct mixed whole = mixed(rank, 0, 0);
    char packed[1000];
    int place = 0;
    MPI_Allreduce(&has_sign, &signs, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&number, &least, 1, MPI_SIGNED_CHAR, MPI_MIN, MPI_COMM_WORLD);
    CHECK(least == 1 - size);
    MPI_Allreduce(&is_big, &bigs, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int signs_differ = signs > 0 && signs < size, orders_differ = bigs > 0 && bigs < size;
    if (!signs_differ && !orders_differ)
        return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_Allreduce(&own, &most, 1, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
    CHECK((error != MPI_SUCCESS) == signs_differ);
    CHECK(MPI_Pack(&whole, 1, mixed_type, packed, sizeof packed, &place, MPI_COMM_WORLD) != MPI_SUCCESS);
    error = MPI_Pack(&rank, 1, MPI_INT, packed, sizeof packed, &place, MPI_COMM_WORLD);
    CHECK((error != MPI_SUCCESS) == orders_differ);
    CHECK(MPI_Pack(packed + 500, 9, MPI_CHAR, packed, sizeof packed, &place, MPI_COMM_WORLD) == MPI_SUCCESS);
    place = 0;
    CHECK(MPI_Pack(&whole, 1, mixed_type, packed, sizeof packed, &place, MPI_COMM_SELF) == MPI_SUCCESS);
    place = 0;
    CHECK(MPI_Unpack(packed, sizeof packed, &place, &whole, 1, mixed_type, MPI_COMM_WORLD) != MPI_SUCCESS);
    CHECK(MPI_Unpack(packed, sizeof packed, &place, &whole, 1, mixed_type, MPI_COMM_SELF) == MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    make_types();
    for (int step = 0; step < size; step++) {
        int other = (step - rank + size) % size;
        if (other != rank) {
            messages(other);
            nested(other);
            rounded(other);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    moved(COUNT);
    moved(LARGE / size);
    moved_mixed();
    reduced(COUNT);
    reduced(LARGE / size * size);
    located();
    refused();
    MPI_Type_free(&mixed_type);
    MPI_Type_free(&nested_type);
    return end("unlike");
}
