/* exchange SEED, under mpirun: ranks have random entries, many of them at two ranks, and some ranks none.
 * After the exchange the ranks' entries one after another are all there are, in order, each once. */
#include "ray2mesh.h"

#include <stdio.h>
#include <stdlib.h>

static int ranks, rank;

static void must(int holds, const char *what, long long value)
{
    if (holds)
        return;
    fprintf(stderr, "exchange: does not hold at rank %d: %s: %lld\n", rank, what, value);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Entry i of all there are: which ones a rank has is random, and at least one has it. */
static struct entry entry_of(int i) { return (struct entry){(i * 7919LL) % 648, i / 648, 0.25 * i}; }

static void entries_are_there_once(unsigned seed)
{
    struct rays_mesh mesh;
    struct entries mine = {0, 0, NULL}, owned;
    char error[RAY2MESH_ERROR_BYTES];
    srand(seed);
    int all = seed % 5 ? rand() % 3000 : 0, first = 0;
    must(!rays_mesh_init(&mesh, 6371, 10, 10, 7000), "a mesh", 0);
    must(rays_mesh_cells(&mesh) == 648, "cells", rays_mesh_cells(&mesh));
    for (int i = 0; i < all; i++) {
        int has = rand() % ranks, too = rand() % 3 ? has : rand() % ranks, twice = rand() % 2;
        if (rank == has || rank == too)
            for (int k = 0; k <= twice; k++)
                must(!entries_add(&mine, entry_of(i)), "memory", i);
    }
    must(!exchange(&mesh, MPI_COMM_WORLD, &mine, &owned, error), error, 0);
    must(mine.count == 0 && !mine.entry, "what was exchanged is gone", mine.count);
    int count = (int)owned.count, sum;
    MPI_Allreduce(&count, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    must(sum == all, "entries, each once", sum);
    for (int i = 0; i < count; i++) {
        const struct entry *at = &owned.entry[i];
        must(at->cell >= 648LL * rank / ranks && at->cell < 648LL * (rank + 1) / ranks, "an owned cell",
             at->cell);
        must(i == 0 || at[-1].cell < at->cell || (at[-1].cell == at->cell && at[-1].item < at->item), "order",
             i);
        for (first = (int)at->item * 648; first < all && entry_of(first).cell != at->cell; first++)
            ;
        must(first < all && entry_of(first).length_km == at->length_km, "the entry's length", first);
    }
    entries_free(&owned);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (unsigned run = 0; run < 20; run++)
        entries_are_there_once((argc > 1 ? atoi(argv[1]) : 1) + run);
    MPI_Finalize();
    return 0;
}
