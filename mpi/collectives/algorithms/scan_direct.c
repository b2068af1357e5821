/* R/2 + n s/B, for operations that commute and ranks in any order. Each site does a scan. For each rank of
 * another site, the last rank of this site that comes before it then has the sum of all that do, and sends it
 * that sum at once. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

/* The number of ranks of `site` that come before `rank`. */
static int before(const struct hierarchy *on, int site, int rank)
{
    int count = 0;
    for (int m = on->first[site]; m < on->first[site + 1]; m++)
        count += on->members[m] < rank;
    return count;
}

int scan_direct(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                MPI_Op op, int inclusive)
{
    struct requests received = {0}, sent = {0};
    struct parts parts = {0};
    void *sum_memory = NULL, *sum = NULL, **piece = NULL;
    int status = parts_make(&parts, on, count, shape, MADE), pieces = 0;
    if (from == MPI_IN_PLACE)
        from = into;
    sum_memory = elements(count, shape, &sum);
    piece = malloc(on->sites * sizeof *piece);
    if (!sum_memory || !piece)
        status = MPI_ERR_NO_MEM;
    for (int s = 0; s < on->sites; s++) {
        int there = before(on, s, on->rank);
        if (s != on->site && there > 0)
            TRY(status, requests_receive(&received, on, parts.origin[s], count, shape->type,
                                         on->members[on->first[s] + there - 1], TAG_SCAN));
    }
    TRY(status, intra_site_scan(on, from, sum, count, shape->type, op));
    for (int rank = 0; rank < on->size; rank++)
        if (on->site_of[rank] != on->site && before(on, on->site, rank) == on->local_rank + 1)
            TRY(status, requests_send(&sent, on, sum, count, shape->type, rank, TAG_SCAN));
    /* This rank adds the sum of the ranks before it in its own site, including itself in an inclusive
     * scan. */
    if (inclusive)
        TRY(status, elements_copy(sum, parts.origin[on->site], count, shape));
    else
        TRY(status, intra_site_exscan(on, from, parts.origin[on->site], count, shape->type, op));
    TRY(status, requests_wait(&received));
    for (int s = 0; s < on->sites && status == MPI_SUCCESS; s++)
        if (s == on->site ? inclusive || on->local_rank > 0 : before(on, s, on->rank) > 0)
            piece[pieces++] = parts.origin[s];
    /* In an exclusive scan no rank comes before rank 0, and its buffer is left unchanged. */
    if (pieces > 0)
        TRY(status, combine(piece, pieces, into, count, shape, op));
    TRY(status, requests_wait(&sent));
    requests_free(&received, status);
    requests_free(&sent, status);
    parts_free(&parts);
    free(sum_memory);
    free(piece);
    return status;
}
