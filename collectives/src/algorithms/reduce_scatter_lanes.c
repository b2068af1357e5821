/* R/2 + n s/B + one flit inside a site: what a rank of another site gets is reduced, flit by flit, to one of this site's ranks, which sends it
 * there; what the site's own ranks get is reduced while that is under way. Several ranks carry in parallel. */
#include "../combine.h"
#include "../here.h"
#include "algorithms.h"

#include <stdlib.h>

/* Which rank of a site sends to a rank of another one. */
static int sender(const struct levels *on, int site, int to)
{
    return on->members[on->first[site] + on->local_rank_of[to] % site_size(on, site)];
}

int reduce_scatter_lanes(struct levels *on, const void *from, void *into, const int counts[], const struct shape *shape, MPI_Op op,
                         int64_t flit)
{
    struct requests received = {0}, sent = {0};
    struct parts parts = {0};
    int own = counts[on->rank];
    int64_t *at = malloc((on->size + 1) * sizeof *at), mine = 0;
    void *memory = NULL, *found = NULL;
    int status = at ? parts_make(&parts, on, own, shape, MADE) : MPI_ERR_NO_MEM;
    const void *all = from == MPI_IN_PLACE ? into : from;
    if (at)
        at[0] = 0;
    for (int i = 0; i < on->size && at; i++) {
        at[i + 1] = at[i] + counts[i];
        if (on->site_of[i] != on->site && sender(on, on->site, i) == on->rank)
            mine += counts[i];
    }
    if (status == MPI_SUCCESS && !(memory = elements(mine, shape, &found)))
        status = MPI_ERR_NO_MEM;
    for (int s = 0; s < on->sites; s++) {
        struct flits flits = flits_of(own, shape->size, flit);
        for (int i = 0; s != on->site && i < flits.pieces && own > 0; i++)
            TRY(status, requests_receive(&received, on, element_at(parts.origin[s], flit_at(&flits, i), shape), flit_count(&flits, i),
                                         shape->type, sender(on, s, on->rank), TAG_REDUCE_SCATTER));
    }
    /* To other sites first, and by turns of their ranks, so that different ranks here send. */
    int64_t done = 0;
    for (int m = 0; m < on->size; m++) {
        int to = on->members[(on->first[on->site + 1] + m) % on->size];
        struct flits flits = flits_of(counts[to], shape->size, flit);
        if (on->site_of[to] == on->site)
            continue;
        int by = sender(on, on->site, to);
        for (int i = 0; i < flits.pieces && counts[to] > 0; i++) {
            void *here = by == on->rank ? element_at(found, done + flit_at(&flits, i), shape) : NULL;
            TRY(status, here_reduce(on, element_at(all, at[to] + flit_at(&flits, i), shape), here, flit_count(&flits, i), shape->type, op, on->local_rank_of[by]));
            if (here)
                TRY(status, requests_send(&sent, on, here, flit_count(&flits, i), shape->type, to, TAG_REDUCE_SCATTER));
        }
        if (by == on->rank)
            done += counts[to];
    }
    for (int m = on->first[on->site]; m < on->first[on->site + 1]; m++) {
        int to = on->members[m];
        if (counts[to] > 0)
            TRY(status, here_reduce(on, element_at(all, at[to], shape), to == on->rank ? parts.origin[on->site] : NULL, counts[to], shape->type, op, on->local_rank_of[to]));
    }
    TRY(status, requests_wait(&received));
    TRY(status, combine(on, parts.origin, on->sites, into, own, shape, op));
    TRY(status, requests_wait(&sent));
    requests_free(&received, status);
    requests_free(&sent, status);
    parts_free(&parts);
    free(memory);
    free(at);
    return status;
}
