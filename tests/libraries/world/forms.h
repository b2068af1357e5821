/* What forms.c does: one collective operation, where its data lies, and what has to come out. */
#ifndef CAUSEWAY_FORMS_H
#define CAUSEWAY_FORMS_H

#include "world_test.h"

enum {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    OPERATIONS
};

enum { BLOCKING, NONBLOCKING, PERSISTENT };
enum { KINDS = 6, SUMS = 2, MOST_RANKS = 16, MARGIN = 256, UNTOUCHED = 0xa5, ALL = 99 };

struct kind {
    const char *name;
    MPI_Datatype type;
    /* Bytes of data in an element, and those of each number of it, as digits. */
    int bytes;
    const char *numbers;
    MPI_Aint extent;
    MPI_Op op;
};

static struct kind kinds[KINDS], sums[SUMS];

struct one {
    MPI_Comm comm;
    int operation, form, in_place, everywhere_in_place, count, root;
    const struct kind *kind;
    MPI_Op op;
    /* This rank, its group's size, and how many it exchanges with: its own group, or the other one. */
    int mine, size, peers, is_inter, group;
    /* Whether this rank has the whole of an operation with a root; what it gives as the root. */
    int is_root, has_part, said_root;
};

/* One buffer: by peer, or one block for all. Starts are in the operation's unit. */
struct side {
    char *all, *at;
    size_t bytes;
    int blocks, counts[MOST_RANKS], starts[MOST_RANKS];
    MPI_Aint places[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS], owned[MOST_RANKS];
};

static void kind_new(struct kind *kind, const char *name, MPI_Datatype type, const char *numbers, MPI_Op op)
{
    MPI_Aint low;
    *kind = (struct kind){.name = name, .type = type, .numbers = numbers, .op = op};
    MPI_Type_commit(&kind->type);
    MPI_Type_size(type, &kind->bytes);
    MPI_Type_get_extent(type, &low, &kind->extent);
}

/* Composes functions x -> a x + b (mod 2^32), which does not commute. */
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

static void make_kinds(void)
{
    MPI_Datatype made;
    MPI_Op op;
    kind_new(&kinds[0], "int", MPI_INT, "4", MPI_OP_NULL);
    MPI_Type_vector(3, 2, 4, MPI_SHORT, &made);
    kind_new(&kinds[1], "vector", made, "2", MPI_OP_NULL);
    MPI_Type_create_resized(MPI_INT, -4, 20, &made);
    kind_new(&kinds[2], "resized int", made, "4", MPI_OP_NULL);
    MPI_Type_create_struct(2, (int[]){1, 4}, (MPI_Aint[]){4, 0}, (MPI_Datatype[]){MPI_INT, MPI_CHAR}, &made);
    kind_new(&kinds[3], "struct out of order", made, "41111", MPI_OP_NULL);
    kind_new(&kinds[4], "double", MPI_DOUBLE, "8", MPI_OP_NULL);
    MPI_Type_contiguous(3, MPI_INT, &made);
    kind_new(&kinds[5], "three ints", made, "4", MPI_OP_NULL);
    MPI_Type_contiguous(2, MPI_UINT32_T, &made);
    MPI_Op_create(compose, 0, &op);
    kind_new(&sums[0], "function", made, "4", op);
    kind_new(&sums[1], "unsigned", MPI_UINT32_T, "4", MPI_SUM);
}

static void one_place(struct one *one, int root)
{
    MPI_Comm_rank(one->comm, &one->mine);
    MPI_Comm_size(one->comm, &one->size);
    MPI_Comm_test_inter(one->comm, &one->is_inter);
    one->peers = one->size;
    if (!one->is_inter) {
        one->root = one->said_root = root % one->size;
        one->is_root = one->mine == one->root;
        one->has_part = 1;
        return;
    }
    MPI_Comm_remote_size(one->comm, &one->peers);
    /* The group that has the lowest rank of the two is 0: evens and odds. */
    one->group = rank % 2;
    MPI_Comm_remote_size(one->comm, &one->peers);
    int size_of_0 = one->group ? one->peers : one->size, total = one->size + one->peers;
    int at = root % total, root_group = at >= size_of_0;
    one->root = root_group ? at - size_of_0 : at;
    one->is_root = root_group == one->group && one->mine == one->root;
    one->has_part = root_group != one->group;
    one->said_root = one->has_part ? one->root : one->is_root ? MPI_ROOT : MPI_PROC_NULL;
}

static unsigned char byte_of(int group, int from, int to, int64_t i)
{
    uint32_t word = (uint32_t)(i / 4 + 1) * 2654435761u + (uint32_t)(group * 7919 + from * 131 + to * 17);
    return (unsigned char)(word >> (8 * (i % 4)));
}

/* So many bytes of data as this processor packs it: the same numbers whatever its order of bytes is. Without
 * `from`, what is to lie where nothing is written. */
static unsigned char *packed_data(const struct kind *kind, int64_t length, int group, int from, int to)
{
    unsigned char *packed = malloc((size_t)length + 1);
    const char *number = kind->numbers;
    for (int64_t at = 0; at < length; at += *number++ - '0') {
        number = *number ? number : kind->numbers;
        for (int bytes = *number - '0', i = 0; i < bytes; i++) {
            int place = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? bytes - 1 - i : i;
            packed[at + place] = from < 0 ? UNTOUCHED : byte_of(group, from, to, at + i);
        }
    }
    return packed;
}

/* Elements between ranks i and j: as many either way. */
static int table(const struct one *one, int i, int j) { return one->count + (i + j) % 3; }

static int is_listed(int operation)
{
    return operation == GATHERV || operation == SCATTERV || operation == ALLGATHERV ||
           operation == ALLTOALLV || operation == ALLTOALLW;
}

static void side_new(const struct one *one, struct side *side, int blocks)
{
    memset(side, 0, sizeof *side);
    side->blocks = blocks;
    for (int i = 0; i < blocks; i++)
        side->counts[i] = one->count;
}

/* Lists have their blocks in another order, with gaps. */
static void side_memory(const struct one *one, struct side *side, int is_listed_here)
{
    MPI_Aint at = 0, unit = one->operation == ALLTOALLW ? 1 : one->kind->extent;
    for (int k = 0; k < side->blocks; k++) {
        int i = is_listed_here ? (k * 5 + 3) % side->blocks : k, length = 1;
        /* 5 and the number of blocks may have a factor in common. */
        if (is_listed_here && side->blocks % 5 == 0)
            i = side->blocks - 1 - k;
        if (one->operation == ALLTOALLW) {
            length = 1 + side->counts[i] % 4;
            side->counts[i] = (side->counts[i] + 3) / 4;
            MPI_Type_contiguous(length, one->kind->type, &side->types[i]);
            MPI_Type_commit(&side->types[i]);
            side->owned[i] = side->types[i];
        }
        side->places[i] = at;
        side->starts[i] = (int)(at / unit);
        at += ((MPI_Aint)side->counts[i] * length + is_listed_here * (k % 3)) * one->kind->extent;
    }
    side->bytes = (size_t)at + 2 * MARGIN;
    side->all = malloc(side->bytes);
    memset(side->all, UNTOUCHED, side->bytes);
    side->at = side->all + MARGIN;
}

static void side_free(struct side *side)
{
    for (int i = 0; i < side->blocks; i++)
        if (side->owned[i])
            MPI_Type_free(&side->owned[i]);
    free(side->all);
}

static MPI_Datatype type_of(const struct one *one, const struct side *side, int i)
{
    return side->owned[i] ? side->owned[i] : one->kind->type;
}

static void block_fill(const struct one *one, struct side *side, int i, int group, int from, int to)
{
    int bytes, position = 0;
    MPI_Type_size(type_of(one, side, i), &bytes);
    int64_t length = (int64_t)bytes * side->counts[i];
    unsigned char *packed = packed_data(one->kind, length, group, from, to);
    if (length)
        PMPI_Unpack(packed, (int)length, &position, side->at + side->places[i], side->counts[i],
                    type_of(one, side, i), MPI_COMM_SELF);
    free(packed);
}

/* Compares a block, and wipes it out. */
static int block_check(const struct one *one, struct side *side, int i, int group, int from, int to)
{
    int bytes, position = 0, faults = 0;
    MPI_Type_size(type_of(one, side, i), &bytes);
    int64_t length = (int64_t)bytes * side->counts[i];
    unsigned char *packed = malloc((size_t)length + 1), *wanted;
    if (length)
        PMPI_Pack(side->at + side->places[i], side->counts[i], type_of(one, side, i), packed, (int)length,
                  &position, MPI_COMM_SELF);
    wanted = packed_data(one->kind, length, group, from, to);
    for (int64_t k = 0; k < length; k++)
        faults += packed[k] != wanted[k];
    free(wanted);
    free(packed);
    block_fill(one, side, i, 0, -1, 0);
    return faults;
}

static int is_untouched(const struct side *side)
{
    for (size_t i = 0; i < side->bytes; i++)
        if ((unsigned char)side->all[i] != UNTOUCHED)
            return 0;
    return 1;
}

static uint32_t number(int group, int from, int i, int half)
{
    return (uint32_t)(group * 1000003 + from * 7919 + i * 31 + half * 17 + 3);
}

static int words(const struct one *one) { return one->kind->bytes / 4; }

static void sum_fill(const struct one *one, struct side *side, int count)
{
    uint32_t *at = (uint32_t *)(void *)side->at;
    for (int i = 0; i < count; i++)
        for (int half = 0; half < words(one); half++)
            at[i * words(one) + half] = number(one->group, one->mine, i, half);
}

/* Whether element `i` of all is what ranks 0 to `last` of the peers make, at `place` of the buffer. */
static int sum_differs(const struct one *one, const struct side *side, int i, int place, int last)
{
    int group = one->is_inter ? 1 - one->group : 0, once = 1;
    uint32_t sum[2] = {0, 0}, left[2];
    for (int from = last; from >= 0; from--) {
        for (int half = 0; half < 2; half++)
            left[half] = number(group, from, i, half);
        if (from == last)
            memcpy(sum, left, sizeof sum);
        else if (words(one) == 2)
            compose(left, sum, &once, NULL);
        else
            sum[0] += left[0];
    }
    return memcmp(side->at + place * one->kind->extent, sum, (size_t)one->kind->bytes) != 0;
}

static int sum_blocks(const struct one *one, int *before)
{
    int total = 0;
    for (int i = 0; i < one->size; i++) {
        if (i == one->mine)
            *before = total;
        total += one->operation == REDUCE_SCATTER ? table(one, i, 0) : one->count;
    }
    return total;
}

static void sum_lay_out(const struct one *one, struct side *out, struct side *in)
{
    int before, total = one->count;
    struct one whole = *one;
    if (one->operation == REDUCE_SCATTER || one->operation == REDUCE_SCATTER_BLOCK) {
        /* Both groups name as many elements. */
        total = one->is_inter ? one->count * one->size * one->peers : sum_blocks(one, &before);
    }
    whole.count = total;
    side_new(&whole, out, 1);
    side_new(&whole, in, 1);
    side_memory(&whole, out, 0);
    side_memory(&whole, in, 0);
    sum_fill(one, one->in_place ? in : out, total);
    for (int i = 0; i < one->size; i++)
        in->counts[i] = one->is_inter ? one->count * one->peers : table(one, i, 0);
}

static int sum_check(const struct one *one, struct side *in)
{
    int first = 0, count = one->count, last = one->peers - 1, faults = 0;
    if (one->operation == REDUCE && !one->is_root)
        return !one->in_place && !is_untouched(in);
    if (one->operation == REDUCE_SCATTER || one->operation == REDUCE_SCATTER_BLOCK) {
        sum_blocks(one, &first);
        count = one->operation == REDUCE_SCATTER ? in->counts[one->mine] : one->count;
        if (one->is_inter) {
            count = one->count * one->peers;
            first = one->mine * count;
        }
    }
    if (one->operation == SCAN || one->operation == EXSCAN)
        last = one->operation == SCAN ? one->mine : one->mine - 1;
    for (int i = 0; i < count && last >= 0; i++)
        faults += sum_differs(one, in, first + i, i, last);
    return faults;
}

/* Fills what this rank gives: in place it is where the result comes. */
static void one_lay_out(struct one *one, struct side *out, struct side *in)
{
    int op = one->operation, listed = is_listed(op), p = one->peers;
    if (op >= REDUCE) {
        if (op == REDUCE_SCATTER_BLOCK && one->is_inter)
            one->operation = REDUCE_SCATTER;
        sum_lay_out(one, out, in);
        return;
    }
    int whole_goes = op == SCATTER || op == SCATTERV, whole_comes = op == GATHER || op == GATHERV;
    int each_goes = op >= ALLTOALL || (whole_goes && one->is_root);
    int each_comes = op >= ALLGATHER || (whole_comes && one->is_root);
    side_new(one, out, each_goes ? p : 1);
    side_new(one, in, each_comes ? p : 1);
    if (listed) {
        int is_exchange = op >= ALLTOALL;
        for (int i = 0; i < out->blocks; i++)
            out->counts[i] =
                is_exchange ? table(one, one->mine, i) : table(one, each_goes ? i : one->mine, 0);
        for (int i = 0; i < in->blocks; i++)
            in->counts[i] =
                is_exchange ? table(one, one->mine, i) : table(one, each_comes ? i : one->mine, 0);
    }
    side_memory(one, out, listed && each_goes);
    side_memory(one, in, listed && each_comes);
    if (one->in_place && !whole_goes) {
        int first = op >= ALLTOALL ? 0 : one->mine, end = op >= ALLTOALL ? p : one->mine + 1;
        for (int i = first; i < end; i++)
            block_fill(one, in, i, one->group, one->mine, op >= ALLTOALL ? i : ALL);
        return;
    }
    for (int i = 0; i < out->blocks; i++)
        if (op != BARRIER && (op != BCAST || one->is_root))
            block_fill(one, out, i, one->group, one->mine, each_goes ? i : ALL);
}

static int one_check(const struct one *one, struct side *out, struct side *in)
{
    int op = one->operation, faults = 0, group = one->is_inter ? 1 - one->group : 0;
    (void)out;
    if (op == BARRIER)
        return 0;
    if (op >= REDUCE)
        return sum_check(one, in);
    int comes = op >= ALLGATHER || ((op == GATHER || op == GATHERV) && one->is_root) ||
                ((op == SCATTER || op == SCATTERV) && one->has_part && !one->in_place) ||
                (op == BCAST && one->has_part && !one->is_root);
    for (int i = 0; i < in->blocks && comes; i++) {
        int from = op == BCAST || op == SCATTER || op == SCATTERV ? one->root : i;
        int to = op == SCATTER || op == SCATTERV || op >= ALLTOALL ? one->mine : ALL;
        faults += block_check(one, in, i, group, from, to);
    }
    return faults + !is_untouched(in);
}

#endif
