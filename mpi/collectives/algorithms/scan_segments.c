/* R/2 + s/B + two segments inside a site, for sites whose ranks are consecutive: the last rank of a site has
 * the site's sum and sends it to every later site, whose first rank combines the sums of the earlier sites
 * and broadcasts the result within its site. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

#include <stdlib.h>

struct segmented_scan {
    struct hierarchy *on;
    const void *from;
    void *into;
    const struct shape *shape;
    MPI_Op op;
    int inclusive;
    struct segments segments;
    struct parts parts;
    void *total, *before;
    void **piece;
    struct requests sent, received;
};

static int is_last(const struct hierarchy *on) { return on->local_rank == on->local_size - 1; }

/* Scans a segment inside the site; the site's last rank sends the site's sum to the later sites. */
static int scan_in_site(struct segmented_scan *run, int i)
{
    struct hierarchy *on = run->on;
    int64_t at = segment_at(&run->segments, i);
    int count = segment_count(&run->segments, i), status = MPI_SUCCESS;
    void *into = element_at(run->into, at, run->shape);
    const void *from = element_at(run->from, at, run->shape);
    if (run->inclusive)
        status = intra_site_scan(on, run->from == run->into ? MPI_IN_PLACE : from, into, count,
                                 run->shape->type, run->op);
    if (!run->total)
        return run->inclusive ? status
                              : intra_site_exscan(on, run->from == run->into ? MPI_IN_PLACE : from, into,
                                                  count, run->shape->type, run->op);
    void *total = element_at(run->total, at, run->shape);
    struct bytes bytes = {0};
    TRY(status, bytes_pack(run->inclusive ? into : from, count, run->shape, &bytes));
    TRY(status, unpack(bytes.at, bytes.length, total, count, run->shape));
    bytes_free(&bytes);
    if (!run->inclusive) {
        TRY(status, intra_site_exscan(on, run->from == run->into ? MPI_IN_PLACE : from, into, count,
                                      run->shape->type, run->op));
        if (on->local_rank > 0)
            TRY(status, real.Reduce_local(into, total, count, run->shape->type, run->op));
    }
    for (int s = on->site + 1; s < on->sites; s++)
        TRY(status,
            requests_send(&run->sent, on, total, count, run->shape->type, leader(on, s, -1), TAG_SCAN));
    return status;
}

/* Adds the sum of the earlier sites to the results of this site's ranks. */
static int add_before(struct segmented_scan *run, int i)
{
    struct hierarchy *on = run->on;
    int64_t at = segment_at(&run->segments, i);
    int count = segment_count(&run->segments, i), status = MPI_SUCCESS;
    void *into = element_at(run->into, at, run->shape), *before = element_at(run->before, at, run->shape);
    if (on->local_rank == 0) {
        for (int s = 0; s < on->site; s++) {
            TRY(status, requests_wait_for(&run->received, i * on->site + s));
            run->piece[s] = element_at(run->parts.origin[s], at, run->shape);
        }
        TRY(status, combine(run->piece, on->site, before, count, run->shape, run->op));
    }
    if (on->local_size > 1)
        TRY(status, intra_site_bcast(on, before, count, run->shape->type, 0));
    if (run->inclusive || on->local_rank > 0) {
        TRY(status, real.Reduce_local(before, into, count, run->shape->type, run->op));
    } else {
        struct bytes bytes = {0};
        TRY(status, bytes_pack(before, count, run->shape, &bytes));
        TRY(status, unpack(bytes.at, bytes.length, into, count, run->shape));
        bytes_free(&bytes);
    }
    return status;
}

int scan_segments(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive, int64_t segment, int ahead)
{
    struct segmented_scan run = {.on = on,
                                 .from = from == MPI_IN_PLACE ? into : from,
                                 .into = into,
                                 .shape = shape,
                                 .op = op,
                                 .inclusive = inclusive,
                                 .segments = segments_of(count, shape->size, segment)};
    int status = MPI_SUCCESS;
    void *total = NULL, *before = NULL;
    if (is_last(on) && on->site < on->sites - 1 && !(total = elements(count, shape, &run.total)))
        status = MPI_ERR_NO_MEM;
    if (on->site > 0 && !(before = elements(count, shape, &run.before)))
        status = MPI_ERR_NO_MEM;
    if (on->local_rank == 0 && on->site > 0) {
        TRY(status, parts_make(&run.parts, on, count, shape, run.before));
        if (!(run.piece = malloc(on->sites * sizeof *run.piece)))
            status = MPI_ERR_NO_MEM;
        for (int i = 0; i < run.segments.pieces; i++)
            for (int s = 0; s < on->site; s++)
                TRY(status,
                    requests_receive(&run.received, on,
                                     element_at(run.parts.origin[s], segment_at(&run.segments, i), shape),
                                     segment_count(&run.segments, i), shape->type,
                                     on->members[on->first[s + 1] - 1], TAG_SCAN));
    }
    for (int i = 0; i < run.segments.pieces + ahead; i++) {
        if (i < run.segments.pieces)
            TRY(status, scan_in_site(&run, i));
        if (i >= ahead && on->site > 0)
            TRY(status, add_before(&run, i - ahead));
    }
    requests_free(&run.sent, status);
    requests_free(&run.received, status);
    parts_free(&run.parts);
    free(run.piece);
    free(total);
    free(before);
    return status;
}
