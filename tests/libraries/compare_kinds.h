/* What compare.c sends: datatypes with operations for them, and buffers of them. */
#ifndef CAUSEWAY_COMPARE_KINDS_H
#define CAUSEWAY_COMPARE_KINDS_H

#include "native.h"

#include <stdint.h>
#include <string.h>

/* 2 x 2 matrices over the integers modulo 2^32: associative, and not commutative. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    uint32_t *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        uint32_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                         a[2] * b[1] + a[3] * b[3]};
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
    /* Operations for reductions, and what the elements are made of for those. */
    MPI_Op ops[4];
    int op_count;
    enum { BYTES, INTS, DOUBLES, PAIRS, MATRICES } filled;
    MPI_Aint extent;
    /* Bytes of an element, without the gap behind it. */
    size_t bytes;
};

/* A datatype of 4 GB: a rank without elements may say that they are of it. */
static MPI_Datatype huge;

static struct kind kinds[12];
static int kind_count;

static void add_kind(const char *name, MPI_Datatype type, int filled, int op_count, MPI_Op a, MPI_Op b,
                     MPI_Op c)
{
    MPI_Aint lb;
    struct kind *kind = &kinds[kind_count++];
    *kind =
        (struct kind){.name = name, .type = type, .filled = filled, .op_count = op_count, .ops = {a, b, c}};
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

#endif
