/* The third phase: an all-to-all by which each rank gets what all found in its cells. Cells are owned in
 * blocks of consecutive ones, so the ranks' entries one after another are in the order of cells, however many
 * ranks there are. */
#include "ray2mesh.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static int by_cell_and_item(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* A ray that was computed by two ranks has the same entries twice. */
static void drop_copies(struct entries *entries)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < entries->count; i++)
        if (i == 0 || by_cell_and_item(&entries->entry[kept - 1], &entries->entry[i]))
            entries->entry[kept++] = entries->entry[i];
    entries->count = kept;
}

struct counts {
    int *to, *to_at, *from, *from_at;
};

static int64_t first_of(int64_t cells, int rank, int ranks)
{
    return cells / ranks * rank + cells % ranks * rank / ranks;
}

/* Counts of what goes to each rank, and what comes. -1 at all ranks if some rank has no memory, or more
 * entries than an int can count. */
static int count(const struct rays_mesh *mesh, const struct entries *mine, MPI_Comm comm, int ranks,
                 struct counts *counts, struct entries *owned)
{
    int64_t cells = rays_mesh_cells(mesh), next = 0;
    counts->to = calloc(4 * (size_t)ranks, sizeof(int));
    int failed = !counts->to || mine->count > INT_MAX;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm);
    if (failed)
        return -1;
    counts->to_at = counts->to + ranks;
    counts->from = counts->to_at + ranks;
    counts->from_at = counts->from + ranks;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t begin = next, end = first_of(cells, rank + 1, ranks);
        while (next < mine->count && mine->entry[next].cell < end)
            next++;
        counts->to[rank] = (int)(next - begin);
        counts->to_at[rank] = (int)begin;
    }
    MPI_Alltoall(counts->to, 1, MPI_INT, counts->from, 1, MPI_INT, comm);
    for (int rank = 0; rank < ranks; rank++) {
        counts->from_at[rank] = (int)owned->count;
        owned->count += counts->from[rank];
        if (owned->count > INT_MAX)
            failed = 1;
    }
    owned->room = owned->count;
    if (!failed)
        owned->entry = malloc((owned->count + 1) * sizeof *owned->entry);
    failed |= !owned->entry;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm);
    return failed ? -1 : 0;
}

int exchange(const struct rays_mesh *mesh, MPI_Comm comm, struct entries *mine, struct entries *owned,
             char error[RAY2MESH_ERROR_BYTES])
{
    int ranks;
    struct counts counts;
    MPI_Datatype type;
    MPI_Comm_size(comm, &ranks);
    *owned = (struct entries){0, 0, NULL};
    if (mine->count)
        qsort(mine->entry, mine->count, sizeof *mine->entry, by_cell_and_item);
    drop_copies(mine);
    int status = count(mesh, mine, comm, ranks, &counts, owned);
    if (status)
        snprintf(error, RAY2MESH_ERROR_BYTES,
                 "a rank has more than 2^31 entries of the matrix, or no memory for them");
    else {
        MPI_Type_contiguous(sizeof(struct entry), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        MPI_Alltoallv(mine->entry, counts.to, counts.to_at, type, owned->entry, counts.from, counts.from_at,
                      type, comm);
        MPI_Type_free(&type);
        qsort(owned->entry, owned->count, sizeof *owned->entry, by_cell_and_item);
        drop_copies(owned);
    }
    free(counts.to);
    entries_free(mine);
    return status;
}
