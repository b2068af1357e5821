#include "layout.h"

#include "left_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layout layout_begin(int most_pieces, const char *name)
{
    struct layout layout = {.type = MPI_DATATYPE_NULL, .is_ours = 1, .alignment = 1};
    layout.pieces = malloc((size_t)(most_pieces ? most_pieces : 1) * sizeof *layout.pieces);
    if (!layout.pieces)
        MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(layout.name, sizeof layout.name, "%s", name);
    return layout;
}

/* The bounds grow to include those of the placed instance, as MPI specifies for types without explicit
 * bounds. */
void layout_place(struct layout *layout, const struct layout *of, ptrdiff_t at)
{
    ptrdiff_t lower = at + of->lower, upper = lower + of->extent;
    if (layout->words == 0) {
        layout->lower = lower;
        layout->extent = upper - lower;
    } else {
        ptrdiff_t so_far = layout->lower + layout->extent;
        layout->lower = lower < layout->lower ? lower : layout->lower;
        layout->extent = (upper > so_far ? upper : so_far) - layout->lower;
    }
    for (int i = 0; i < of->count; i++) {
        layout->pieces[layout->count] = of->pieces[i];
        layout->pieces[layout->count++].at += at;
    }
    layout->words += of->words;
    layout->alignment = of->alignment > layout->alignment ? of->alignment : layout->alignment;
}

static void place_block(struct layout *layout, const struct layout *of, ptrdiff_t at, int instances)
{
    for (int i = 0; i < instances; i++)
        layout_place(layout, of, at + i * of->extent);
}

void layout_commit(struct layout *layout)
{
    if (layout->is_ours)
        MPI_Type_commit(&layout->type);
}

void layout_free(struct layout *layout)
{
    if (layout->is_ours && layout->type != MPI_DATATYPE_NULL)
        MPI_Type_free(&layout->type);
    free(layout->pieces);
    layout->pieces = NULL;
}

/* Returns a number of bytes that keeps numbers aligned: an MPI may copy them with instructions that require
 * it. */
static ptrdiff_t gap(const struct layout *of, struct random *random)
{
    return (ptrdiff_t)of->alignment * (1 + random_below(random, 3));
}

static void resize(struct layout *layout, ptrdiff_t lower, ptrdiff_t extent)
{
    MPI_Datatype old = layout->type;
    MPI_Type_create_resized(old, lower, extent, &layout->type);
    MPI_Type_free(&old);
    layout->lower = lower;
    layout->extent = extent;
}

static void plain(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    (void)random;
    (void)instances;
    layout_place(made, of, 0);
    made->type = of->type;
    made->is_ours = 0;
}

static void contiguous(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    (void)random;
    place_block(made, of, 0, instances);
    MPI_Type_contiguous(instances, of->type, &made->type);
}

static void vector(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    int length = random_divisor(random, instances), blocks = instances / length;
    int stride = length + 1 + random_below(random, 3);
    for (int i = 0; i < blocks; i++)
        place_block(made, of, i * stride * of->extent, length);
    MPI_Type_vector(blocks, length, stride, of->type, &made->type);
}

static void byte_vector_of(struct layout *made, const struct layout *of, int instances, struct random *random,
                           int sign)
{
    int length = random_divisor(random, instances), blocks = instances / length;
    ptrdiff_t stride = sign * (length * of->extent + gap(of, random));
    for (int i = 0; i < blocks; i++)
        place_block(made, of, i * stride, length);
    MPI_Type_create_hvector(blocks, length, stride, of->type, &made->type);
}

static void byte_vector(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    byte_vector_of(made, of, instances, random, 1);
}

static void negative_stride(struct layout *made, const struct layout *of, int instances,
                            struct random *random)
{
    byte_vector_of(made, of, instances, random, -1);
}

/* Takes the columns of a matrix one after the other: vectors of one column, each starting one element after
 * the previous one. */
static void transposed(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    int columns = random_divisor(random, instances), rows = instances / columns;
    int width = columns + random_below(random, 2);
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, width, of->type, &column);
    MPI_Type_create_hvector(columns, 1, of->extent, column, &made->type);
    MPI_Type_free(&column);
    for (int i = 0; i < columns; i++)
        for (int j = 0; j < rows; j++)
            layout_place(made, of, (j * width + i) * of->extent);
}

/* Blocks one after the other, with gaps, in an order that need not be that of memory. */
struct blocks {
    int count;
    int *lengths;
    int *displs;       /* in instances */
    MPI_Aint *offsets; /* in bytes */
};

static struct blocks blocks_make(const struct layout *of, int instances, int length, struct random *random)
{
    int most = 2 * instances + 2;
    struct blocks blocks = {0, malloc(most * sizeof(int)), malloc(most * sizeof(int)),
                            malloc(most * sizeof(MPI_Aint))};
    if (!blocks.lengths || !blocks.displs || !blocks.offsets)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int place = random_below(random, 3);
    for (int left = instances; left > 0; blocks.count++) {
        /* Some blocks have no elements. Such a block has no effect, wherever it is. */
        int is_empty = !length && blocks.count % 2 && random_below(random, 3) == 0;
        int wanted = length ? length : 1 + random_below(random, left < 64 ? left : 64);
        blocks.lengths[blocks.count] = is_empty ? 0 : wanted;
        blocks.displs[blocks.count] = place;
        place += blocks.lengths[blocks.count] + random_below(random, 3);
        left -= blocks.lengths[blocks.count];
    }
    if (random_below(random, 2))
        for (int i = blocks.count - 1; i > 0; i--) {
            int j = random_below(random, i + 1);
            int place_i = blocks.displs[i], length_i = blocks.lengths[i];
            blocks.displs[i] = blocks.displs[j], blocks.lengths[i] = blocks.lengths[j];
            blocks.displs[j] = place_i, blocks.lengths[j] = length_i;
        }
    ptrdiff_t shift = gap(of, random);
    for (int i = 0; i < blocks.count; i++)
        blocks.offsets[i] = blocks.displs[i] * of->extent + shift;
    return blocks;
}

static void blocks_place(struct layout *made, const struct layout *of, struct blocks *blocks, int in_bytes)
{
    for (int i = 0; i < blocks->count; i++)
        place_block(made, of, in_bytes ? blocks->offsets[i] : blocks->displs[i] * of->extent,
                    blocks->lengths[i]);
    free(blocks->lengths);
    free(blocks->displs);
    free(blocks->offsets);
}

static void indexed_block(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    int length = random_divisor(random, instances);
    struct blocks blocks = blocks_make(of, instances, length, random);
    MPI_Type_create_indexed_block(blocks.count, length, blocks.displs, of->type, &made->type);
    blocks_place(made, of, &blocks, 0);
}

static void indexed(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    struct blocks blocks = blocks_make(of, instances, 0, random);
    MPI_Type_indexed(blocks.count, blocks.lengths, blocks.displs, of->type, &made->type);
    blocks_place(made, of, &blocks, 0);
}

static void byte_indexed(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    struct blocks blocks = blocks_make(of, instances, 0, random);
    MPI_Type_create_hindexed(blocks.count, blocks.lengths, blocks.offsets, of->type, &made->type);
    blocks_place(made, of, &blocks, 1);
}

static void byte_indexed_block(struct layout *made, const struct layout *of, int instances,
                               struct random *random)
{
    int length = random_divisor(random, instances);
    struct blocks blocks = blocks_make(of, instances, length, random);
    MPI_Type_create_hindexed_block(blocks.count, length, blocks.offsets, of->type, &made->type);
    blocks_place(made, of, &blocks, 1);
}

/* Makes a struct of a block, an empty block, and a contiguous run of the rest. */
static void structure(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    int first = 1 + random_below(random, instances), rest = instances - first;
    ptrdiff_t second = first * of->extent + gap(of, random);
    MPI_Datatype run;
    MPI_Type_contiguous(rest, of->type, &run);
    const int lengths[3] = {first, 0, rest > 0};
    const MPI_Aint offsets[3] = {0, 1, second};
    const MPI_Datatype types[3] = {of->type, MPI_INT, run};
    MPI_Type_create_struct(3, lengths, offsets, types, &made->type);
    MPI_Type_free(&run);
    place_block(made, of, 0, first);
    place_block(made, of, second, rest);
    /* MPIs may add padding for alignment as they like, so the bounds are set. */
    resize(made, made->lower, made->extent + gap(of, random));
}

/* Splits a number into factors for up to three dimensions. */
static int factor(int number, int parts[3], struct random *random)
{
    int dimensions = 1 + random_below(random, 3);
    for (int i = 0; i < dimensions; i++) {
        parts[i] = i == dimensions - 1 ? number : random_divisor(random, number);
        number /= parts[i];
    }
    return dimensions;
}

/* Places a box of `parts` in an array of `sizes`. `indices` gives the positions along each dimension. */
static void place_box(struct layout *made, const struct layout *of, int dimensions, const int *sizes,
                      const int *parts, int *const *indices, int order)
{
    int all = 1;
    for (int i = 0; i < dimensions; i++)
        all *= parts[i];
    for (int n = 0; n < all; n++) {
        ptrdiff_t place = 0, weight = 1;
        /* The dimension that varies fastest in memory varies fastest in the type, too. */
        for (int i = 0, rest = n; i < dimensions; i++) {
            int dimension = order == MPI_ORDER_C ? dimensions - 1 - i : i;
            place += weight * indices[dimension][rest % parts[dimension]];
            rest /= parts[dimension];
            weight *= sizes[dimension];
        }
        layout_place(made, of, place * of->extent);
    }
    ptrdiff_t total = 1;
    for (int i = 0; i < dimensions; i++)
        total *= sizes[i];
    made->lower = 0;
    made->extent = total * of->extent;
}

static int *run_of_indices(int first, int block, int step, int count)
{
    int *indices = malloc((size_t)count * sizeof *indices);
    if (!indices)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < count; i++)
        indices[i] = first + i / block * step + i % block;
    return indices;
}

static void subarray(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    int parts[3], sizes[3], starts[3], *indices[3], dimensions = factor(instances, parts, random);
    int order = random_below(random, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int i = 0; i < dimensions; i++) {
        sizes[i] = parts[i] + random_below(random, 3);
        starts[i] = random_below(random, sizes[i] - parts[i] + 1);
        indices[i] = run_of_indices(starts[i], parts[i], 0, parts[i]);
    }
    MPI_Type_create_subarray(dimensions, sizes, parts, starts, order, of->type, &made->type);
    place_box(made, of, dimensions, sizes, parts, indices, order);
    for (int i = 0; i < dimensions; i++)
        free(indices[i]);
}

/* Makes one process's share of an array that is distributed in blocks or cyclically. Every process has a
 * share of the same size. */
static void darray(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    int parts[3], sizes[3], distributions[3], arguments[3], processes[3], *indices[3];
    int dimensions = factor(instances, parts, random), all = 1, rank = 0;
    int order = random_below(random, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int i = 0; i < dimensions; i++) {
        processes[i] = 1 + random_below(random, 3);
        sizes[i] = parts[i] * processes[i];
        int mine = random_below(random, processes[i]);
        /* The grid of processes is always numbered in C order (MPI 4.1, 5.1.4). */
        rank = rank * processes[i] + mine;
        all *= processes[i];
        int is_cyclic = random_below(random, 2);
        int block = is_cyclic ? random_divisor(random, parts[i]) : parts[i];
        distributions[i] = is_cyclic ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK;
        arguments[i] = block;
        indices[i] = run_of_indices(mine * block, block, block * processes[i], parts[i]);
    }
    MPI_Type_create_darray(all, rank, dimensions, sizes, distributions, arguments, processes, order, of->type,
                           &made->type);
    place_box(made, of, dimensions, sizes, parts, indices, order);
    for (int i = 0; i < dimensions; i++)
        free(indices[i]);
}

static void resized(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    contiguous(made, of, instances, random);
    resize(made, made->lower, made->extent + gap(of, random));
}

static void negative_lower_bound(struct layout *made, const struct layout *of, int instances,
                                 struct random *random)
{
    contiguous(made, of, instances, random);
    ptrdiff_t before = gap(of, random);
    resize(made, made->lower - before, made->extent + before + gap(of, random));
}

static void duplicate(struct layout *made, const struct layout *of, int instances, struct random *random)
{
    vector(made, of, instances, random);
    MPI_Datatype old = made->type;
    MPI_Type_dup(old, &made->type);
    MPI_Type_free(&old);
}

static const struct {
    const char *name;
    void (*make)(struct layout *made, const struct layout *of, int instances, struct random *random);
} kinds[LAYOUT_KINDS] = {
    [LAYOUT_PLAIN] = {"plain", plain},
    [LAYOUT_CONTIGUOUS] = {"contiguous", contiguous},
    [LAYOUT_VECTOR] = {"vector", vector},
    [LAYOUT_BYTE_VECTOR] = {"hvector", byte_vector},
    [LAYOUT_NEGATIVE_STRIDE] = {"negative hvector", negative_stride},
    [LAYOUT_TRANSPOSED] = {"vector of vectors", transposed},
    [LAYOUT_INDEXED_BLOCK] = {"indexed block", indexed_block},
    [LAYOUT_INDEXED] = {"indexed", indexed},
    [LAYOUT_BYTE_INDEXED] = {"hindexed", byte_indexed},
    [LAYOUT_BYTE_INDEXED_BLOCK] = {"hindexed block", byte_indexed_block},
    [LAYOUT_STRUCT] = {"struct", structure},
    [LAYOUT_SUBARRAY] = {"subarray", subarray},
    [LAYOUT_DARRAY] = {"darray", darray},
    [LAYOUT_RESIZED] = {"resized", resized},
    [LAYOUT_NEGATIVE_LOWER_BOUND] = {"negative lower bound", negative_lower_bound},
    [LAYOUT_DUPLICATE] = {"duplicate of a vector", duplicate},
};

struct layout layout_make(enum layout_kind kind, const struct layout *of, int instances,
                          struct random *random)
{
    char name[sizeof((struct layout *)0)->name];
    if (is_left_out(kinds[kind].name))
        kind = LAYOUT_CONTIGUOUS;
    if (kind == LAYOUT_PLAIN) {
        instances = 1;
        snprintf(name, sizeof name, "%s", of->name);
    } else {
        snprintf(name, sizeof name, "%s of %d %.60s", kinds[kind].name, instances, of->name);
    }
    struct layout made = layout_begin(of->count * instances, name);
    kinds[kind].make(&made, of, instances, random);
    return made;
}
