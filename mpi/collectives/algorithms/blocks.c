/* Each rank combines one block of the vector in the order of ranks, whatever their sites. Costs about R/2 + n
 * s/2B for the exchange of blocks, and R/2 + s/2B for handing out the results (nothing for reduce_scatter, n
 * s/2B for a scan). */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"

#include <stdlib.h>
#include <string.h>

struct block_reduction {
    struct hierarchy *on;
    const struct shape *shape;
    /* Rank i's block has counts[i] elements and begins at byte displs[i] of the vector. */
    MPI_Count *counts;
    MPI_Aint *displs;
    /* parts holds each rank's values of this rank's block. Once combined, part i is the sum of ranks 0 to
     * i. */
    void *memory, *parts;
    MPI_Count *part_counts;
    MPI_Aint *part_displs;
    MPI_Datatype *types;
};

static void *part(const struct block_reduction *run, int rank)
{
    return (char *)run->parts + run->part_displs[rank];
}

static void block_reduction_free(struct block_reduction *run)
{
    free(run->counts);
    free(run->displs);
    free(run->types);
    free(run->memory);
}

/* Cuts the vector into blocks: of counts[i] elements for rank i, or, if `counts` is NULL, into equal blocks
 * of `count` elements in total. */
static int block_reduction_make(struct block_reduction *run, struct hierarchy *on, const int counts[],
                                int64_t count, const struct shape *shape)
{
    int size = on->size;
    *run = (struct block_reduction){.on = on, .shape = shape};
    run->counts = calloc(2 * size, sizeof *run->counts);
    run->displs = malloc(2 * size * sizeof *run->displs);
    run->types = malloc(size * sizeof *run->types);
    if (!run->counts || !run->displs || !run->types)
        return MPI_ERR_NO_MEM;
    run->part_counts = run->counts + size;
    run->part_displs = run->displs + size;
    int64_t at = 0;
    for (int i = 0; i < size; i++) {
        run->counts[i] = counts ? counts[i] : (int)(count * (i + 1) / size - count * i / size);
        run->displs[i] = at * shape->extent;
        run->types[i] = shape->type;
        at += run->counts[i];
    }
    int mine = (int)run->counts[on->rank];
    for (int i = 0; i < size; i++) {
        run->part_counts[i] = mine;
        run->part_displs[i] = (MPI_Aint)mine * i * shape->extent;
    }
    run->memory = elements((int64_t)mine * size, shape, &run->parts);
    return run->memory ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int put_together(struct block_reduction *run, const void *from, MPI_Op op)
{
    struct hierarchy *on = run->on;
    int mine = (int)run->counts[on->rank];
    int status = alltoall_direct(on, from, run->counts, run->displs, run->types, run->parts, run->part_counts,
                                 run->part_displs, run->types);
    for (int i = 1; i < on->size && mine > 0; i++)
        TRY(status, real.Reduce_local(part(run, i - 1), part(run, i), mine, run->shape->type, op));
    return status;
}

int hand_out_blocks(struct hierarchy *on, const void *own, const MPI_Count counts[], const MPI_Aint displs[],
                    void *into, const struct shape *shape, int64_t segment)
{
    int64_t *lengths = malloc(2 * on->size * sizeof *lengths), *at = lengths + on->size, all = 0;
    struct bytes mine = {0};
    if (!lengths)
        return MPI_ERR_NO_MEM;
    for (int m = 0; m < on->size; m++) {
        lengths[m] = (int64_t)counts[on->members[m]] * shape->size;
        at[m] = shape->is_contiguous ? displs[on->members[m]] : all;
        all += lengths[m];
    }
    char *room = shape->is_contiguous ? into : malloc(all + 1);
    int status =
        room || shape->is_contiguous ? bytes_pack(own, counts[on->rank], shape, &mine) : MPI_ERR_NO_MEM;
    int64_t place = at[on->first[on->site] + on->local_rank];
    if (status == MPI_SUCCESS && mine.at != room + place)
        memcpy(room + place, mine.at, mine.length);
    TRY(status, allgather_multi_leader(on, lengths, at, room, segment));
    for (int m = 0; m < on->size && !shape->is_contiguous; m++) {
        int rank = on->members[m];
        TRY(status, unpack(room + at[m], lengths[m], (char *)into + displs[rank], counts[rank], shape));
    }
    bytes_free(&mine);
    if (!shape->is_contiguous)
        free(room);
    free(lengths);
    return status;
}

int allreduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                     MPI_Op op, int64_t segment)
{
    struct block_reduction run;
    int status = block_reduction_make(&run, on, NULL, count, shape);
    TRY(status, put_together(&run, from == MPI_IN_PLACE ? into : from, op));
    TRY(status, hand_out_blocks(on, part(&run, on->size - 1), run.counts, run.displs, into, shape, segment));
    block_reduction_free(&run);
    return status;
}

int reduce_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int root)
{
    struct block_reduction run;
    int status = block_reduction_make(&run, on, NULL, count, shape);
    TRY(status, put_together(&run, from == MPI_IN_PLACE ? into : from, op));
    TRY(status, gather_direct(on, part(&run, on->size - 1), run.counts[on->rank], shape->type, into,
                              run.counts, run.displs, shape->type, root));
    block_reduction_free(&run);
    return status;
}

int reduce_scatter_blocks(struct hierarchy *on, const void *from, void *into, const int counts[],
                          const struct shape *shape, MPI_Op op)
{
    struct block_reduction run;
    int status = block_reduction_make(&run, on, counts, 0, shape);
    TRY(status, put_together(&run, from == MPI_IN_PLACE ? into : from, op));
    TRY(status, elements_copy(part(&run, on->size - 1), into, counts[on->rank], shape));
    block_reduction_free(&run);
    return status;
}

int scan_blocks(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive)
{
    struct block_reduction run;
    int status = block_reduction_make(&run, on, NULL, count, shape);
    TRY(status, put_together(&run, from == MPI_IN_PLACE ? into : from, op));
    /* Each rank gets the sum of the ranks before it, including itself in an inclusive scan. In an exclusive
     * scan rank 0 gets nothing, and its buffer is left unchanged. */
    for (int i = on->size - 1; !inclusive && status == MPI_SUCCESS && i >= 0; i--) {
        run.part_counts[i] = i > 0 ? run.part_counts[i] : 0;
        run.part_displs[i] = i > 0 ? run.part_displs[i - 1] : 0;
        run.counts[i] = on->rank > 0 ? run.counts[i] : 0;
    }
    TRY(status, alltoall_direct(on, run.parts, run.part_counts, run.part_displs, run.types, into, run.counts,
                                run.displs, run.types));
    block_reduction_free(&run);
    return status;
}
