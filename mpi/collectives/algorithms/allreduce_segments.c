/* R/2 + s/B + two segments inside a site: each site reduces segment after segment to its leader; the leaders
 * exchange their results, combine them in the order of sites, and broadcast them within their sites. `ahead`
 * segments are reduced before the first is handed out: enough to cover the link's latency. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

#include <stdlib.h>

struct segmented_allreduce {
    struct hierarchy *on;
    const void *from;
    void *into;
    const struct shape *shape;
    MPI_Op op;
    struct segments segments;
    /* Each site's result; only the leader has it. */
    struct parts parts;
    struct requests sent, received;
    void **piece;
};

static int reduce_in_site(struct segmented_allreduce *run, int i)
{
    struct hierarchy *on = run->on;
    int count = segment_count(&run->segments, i);
    void *own = element_at(run->into, segment_at(&run->segments, i), run->shape);
    const void *from = run->from == MPI_IN_PLACE
                           ? run->from
                           : element_at(run->from, segment_at(&run->segments, i), run->shape);
    if (on->local_rank > 0) {
        from = run->from == MPI_IN_PLACE ? own : from;
        return intra_site_reduce(on, from, NULL, count, run->shape->type, run->op, 0);
    }
    int status = intra_site_reduce(on, from, own, count, run->shape->type, run->op, 0);
    for (int s = 0; s < on->sites; s++)
        if (s != on->site)
            TRY(status, requests_send(&run->sent, on, own, count, run->shape->type, leader(on, s, -1),
                                      TAG_ALLREDUCE));
    return status;
}

static int hand_out(struct segmented_allreduce *run, int i)
{
    struct hierarchy *on = run->on;
    int count = segment_count(&run->segments, i);
    void *own = element_at(run->into, segment_at(&run->segments, i), run->shape);
    int status = MPI_SUCCESS;
    if (on->local_rank == 0) {
        for (int s = 0, at = 0; s < on->sites; s++) {
            if (s != on->site)
                TRY(status, requests_wait_for(&run->received, i * (on->sites - 1) + at++));
            run->piece[s] = element_at(run->parts.origin[s], segment_at(&run->segments, i), run->shape);
        }
        /* The result overwrites this site's sum, so that must have been sent first. */
        for (int s = 0; s < on->sites - 1; s++)
            TRY(status, requests_wait_for(&run->sent, i * (on->sites - 1) + s));
        TRY(status, combine(run->piece, on->sites, own, count, run->shape, run->op));
    }
    if (on->local_size > 1)
        TRY(status, intra_site_bcast(on, own, count, run->shape->type, 0));
    return status;
}

int allreduce_segments(struct hierarchy *on, const void *from, void *into, int count,
                       const struct shape *shape, MPI_Op op, int64_t segment, int ahead)
{
    struct segmented_allreduce run = {.on = on,
                                      .from = from,
                                      .into = into,
                                      .shape = shape,
                                      .op = op,
                                      .segments = segments_of(count, shape->size, segment)};
    int status = MPI_SUCCESS;
    if (on->local_rank == 0) {
        status = parts_make(&run.parts, on, count, shape, into);
        if (status == MPI_SUCCESS && !(run.piece = malloc(on->sites * sizeof *run.piece)))
            status = MPI_ERR_NO_MEM;
        for (int i = 0; i < run.segments.pieces; i++)
            for (int s = 0; s < on->sites; s++)
                if (s != on->site)
                    TRY(status,
                        requests_receive(&run.received, on,
                                         element_at(run.parts.origin[s], segment_at(&run.segments, i), shape),
                                         segment_count(&run.segments, i), shape->type, leader(on, s, -1),
                                         TAG_ALLREDUCE));
    }
    for (int i = 0; i < run.segments.pieces + ahead; i++) {
        if (i < run.segments.pieces)
            TRY(status, reduce_in_site(&run, i));
        if (i >= ahead)
            TRY(status, hand_out(&run, i - ahead));
    }
    requests_free(&run.sent, status);
    requests_free(&run.received, status);
    parts_free(&run.parts);
    free(run.piece);
    return status;
}
