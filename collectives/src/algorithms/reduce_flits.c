/* R/2 + s/B + one flit inside a site: each site reduces flit after flit to one rank, which sends it to the root; the root puts the sites'
 * results together. */
#include "../combine.h"
#include "../here.h"
#include "algorithms.h"

#include <stdlib.h>

static int at_root(struct levels *on, const void *from, void *into, const struct shape *shape, MPI_Op op, int root,
                   const struct flits *flits)
{
    struct requests some = {0};
    struct parts parts = {0};
    void **piece = NULL;
    int status = parts_make(&parts, on, flits->count, shape, into);
    if (status == MPI_SUCCESS && !(piece = malloc(on->sites * sizeof *piece)))
        status = MPI_ERR_NO_MEM;
    for (int i = 0; i < flits->pieces; i++)
        for (int s = 0; s < on->sites; s++)
            if (s != on->site)
                TRY(status,
                    requests_receive(&some, on, element_at(parts.origin[s], flit_at(flits, i), shape),
                                     flit_count(flits, i), shape->type, speaker(on, s, root), TAG_REDUCE));
    for (int i = 0; i < flits->pieces; i++) {
        TRY(status, here_reduce(on, element_at(from, flit_at(flits, i), shape), element_at(into, flit_at(flits, i), shape), flit_count(flits, i), shape->type, op, on->local_rank));
    }
    for (int i = 0, next = 0; i < flits->pieces; i++) {
        for (int s = 0; s < on->sites; s++) {
            if (s != on->site)
                TRY(status, requests_wait_for(&some, next++));
            if (status == MPI_SUCCESS)
                piece[s] = element_at(parts.origin[s], flit_at(flits, i), shape);
        }
        TRY(status, combine(on, piece, on->sites, element_at(into, flit_at(flits, i), shape), flit_count(flits, i), shape,
                            op));
    }
    requests_free(&some, status);
    parts_free(&parts);
    free(piece);
    return status;
}

int reduce_flits(struct levels *on, const void *from, void *into, int count, const struct shape *shape, MPI_Op op, int root,
                 int64_t flit)
{
    struct flits flits = flits_of(count, shape->size, flit);
    struct requests some = {0};
    int status = MPI_SUCCESS;
    int to = speaker(on, on->site, root);
    void *memory = NULL, *found = NULL;
    if (on->rank == root) {
        /* Not in place inside the site: MPICH 4.0.2 crashes on it where the root is not rank 0. */
        if (from == MPI_IN_PLACE) {
            memory = elements(count, shape, &found);
            TRY(status, memory ? elements_copy(on, into, found, count, shape) : MPI_ERR_NO_MEM);
            from = found;
        }
        TRY(status, at_root(on, from, into, shape, op, root, &flits));
        free(memory);
        return status;
    }
    if (on->rank == to && !(memory = elements(count, shape, &found)))
        status = MPI_ERR_NO_MEM;
    for (int i = 0; i < flits.pieces; i++) {
        void *here = found ? element_at(found, flit_at(&flits, i), shape) : NULL;
        TRY(status, here_reduce(on, element_at(from, flit_at(&flits, i), shape), here, flit_count(&flits, i), shape->type, op, on->local_rank_of[to]));
        if (found)
            TRY(status, requests_send(&some, on, here, flit_count(&flits, i), shape->type, root, TAG_REDUCE));
    }
    requests_free(&some, status);
    free(memory);
    return status;
}
