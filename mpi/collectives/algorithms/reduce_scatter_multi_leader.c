/* R/2 + n s/B + one segment inside a site. Each rank's block is summed by the rank itself at its own site; at
 * each other site, that site's ranks take turns, segment by segment: the others send the rank whose turn it
 * is their values, and it sends the sum to the block's owner. Segments for other sites come first; those for
 * the site's own ranks are summed while the former are in transit. In each reduction every rank of a site
 * sums one segment, while the segments of the next reduction are being sent. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/local_reduction.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

#include <stdlib.h>

/* A rank receives as many segments at once as its site has ranks. If a site has more ranks than this,
 * segments are made smaller. */
#define WHOLE_SEGMENTS 8
#define MIN_SEGMENT (16 * 1024)

/* A segment of rank `to`'s block: `count` elements from element `at` on. A count of 0 means that none is
 * left. */
struct piece {
    int to, count;
    int64_t at;
};

/* The segment that one of this site's ranks sums next. Members are counted from the first member of the next
 * site. */
struct place {
    int member, segment;
};

struct multi_leader_reduce_scatter {
    struct hierarchy *on;
    /* This rank's elements for all ranks: counts[r] of them are for rank r, and begin at element at[r]. */
    const void *all;
    const int *counts;
    int64_t *at;
    const struct shape *shape;
    MPI_Op op;
    int64_t segment;
    /* The position of each local rank in the list of segments. */
    struct place *displs;
    /* One reduction inside the site is summed while the other's segments are in transit. mine[i] is the
     * segment that this rank sums in reductions[i]. */
    struct local_reduction reductions[2];
    struct piece mine[2];
    /* Each site's result for this rank. */
    struct parts own;
    /* This rank's sums for ranks of other sites: `done` elements so far. `memory` is the pointer to free. */
    void *found, *memory;
    int64_t done;
    struct requests received, sent;
};

/* The local rank that sums a segment of rank `to`'s block at `site`: `to` itself at its own site; at other
 * sites the ranks take turns. */
static int adder(const struct hierarchy *on, int site, int to, int segment)
{
    return on->site_of[to] == site ? on->local_rank_of[to]
                                   : (on->local_rank_of[to] + segment) % site_size(on, site);
}

/* Cuts rank `to`'s block into segments. */
static struct segments cut(const struct multi_leader_reduce_scatter *run, int to)
{
    return segments_of(run->counts[to], run->shape->size, run->segment);
}

/* The next segment that local rank r sums. Those for other sites come first. */
static struct piece next(struct multi_leader_reduce_scatter *run, int r)
{
    const struct hierarchy *on = run->on;
    for (struct place *place = &run->displs[r]; place->member < on->size;
         place->member++, place->segment = 0) {
        int to = on->members[(on->first[on->site + 1] + place->member) % on->size];
        struct segments segments = cut(run, to);
        while (run->counts[to] > 0 && place->segment < segments.pieces) {
            int segment = place->segment++;
            if (adder(on, on->site, to, segment) == r)
                return (struct piece){.to = to,
                                      .count = segment_count(&segments, segment),
                                      .at = segment_at(&segments, segment)};
        }
    }
    return (struct piece){0};
}

/* Fills reduction `number` with the next segment of each local rank. Returns false when none is left. */
static int prepare(struct multi_leader_reduce_scatter *run, int number)
{
    struct local_reduction *local = &run->reductions[number];
    int is_left = 0;
    for (int r = 0; r < run->on->local_size; r++) {
        struct piece piece = next(run, r);
        local->counts[r] = piece.count;
        local->pieces[r] = element_at(run->all, run->at[piece.to] + piece.at, run->shape);
        is_left |= piece.count > 0;
        if (r == run->on->local_rank)
            run->mine[number] = piece;
    }
    return is_left;
}

/* Sums this rank's segment of reduction `number`. If it belongs to a rank of another site, sends it there at
 * once. */
static int finish(struct multi_leader_reduce_scatter *run, int number)
{
    struct hierarchy *on = run->on;
    const struct piece *piece = &run->mine[number];
    int is_here = piece->to == on->rank;
    void *sum = is_here ? element_at(run->own.origin[on->site], piece->at, run->shape)
                        : element_at(run->found, run->done, run->shape);
    int status = local_reduction_end(&run->reductions[number], on, sum, run->shape, run->op);
    if (!is_here && piece->count > 0) {
        TRY(status, requests_send(&run->sent, on, sum, piece->count, run->shape->type, piece->to,
                                  TAG_REDUCE_SCATTER));
        run->done += piece->count;
    }
    return status;
}

/* Posts a receive for each segment from each other site, from the rank that sums it there. */
static int receive(struct multi_leader_reduce_scatter *run)
{
    struct hierarchy *on = run->on;
    struct segments segments = cut(run, on->rank);
    int status = MPI_SUCCESS;
    for (int s = 0; s < on->sites && run->counts[on->rank] > 0; s++)
        for (int i = 0; s != on->site && i < segments.pieces; i++)
            TRY(status,
                requests_receive(&run->received, on,
                                 element_at(run->own.origin[s], segment_at(&segments, i), run->shape),
                                 segment_count(&segments, i), run->shape->type,
                                 on->members[on->first[s] + adder(on, s, on->rank, i)], TAG_REDUCE_SCATTER));
    return status;
}

/* Computes the segments, and allocates room for them. */
static int prepare_all(struct multi_leader_reduce_scatter *run)
{
    const struct hierarchy *on = run->on;
    int64_t mine = 0, most = 0, smaller = run->segment * WHOLE_SEGMENTS / on->largest;
    if (on->largest > WHOLE_SEGMENTS && run->segment > MIN_SEGMENT)
        run->segment = smaller > MIN_SEGMENT ? smaller : MIN_SEGMENT;
    run->at = malloc((on->size + 1) * sizeof *run->at);
    run->displs = calloc(on->local_size, sizeof *run->displs);
    if (!run->at || !run->displs)
        return MPI_ERR_NO_MEM;
    run->at[0] = 0;
    for (int i = 0; i < on->size; i++) {
        struct segments segments = cut(run, i);
        int64_t longest = ((int64_t)run->counts[i] + segments.pieces - 1) / segments.pieces;
        run->at[i + 1] = run->at[i] + run->counts[i];
        most = longest > most ? longest : most;
        for (int segment = 0; on->site_of[i] != on->site && segment < segments.pieces; segment++)
            if (adder(on, on->site, i, segment) == on->local_rank)
                mine += segment_count(&segments, segment);
    }
    if (!(run->memory = elements(mine, run->shape, &run->found)))
        return MPI_ERR_NO_MEM;
    int status = parts_make(&run->own, on, run->counts[on->rank], run->shape, MADE);
    for (int i = 0; i < 2; i++)
        TRY(status, local_reduction_make(&run->reductions[i], on, most, run->shape));
    return status;
}

static void free_all(struct multi_leader_reduce_scatter *run, int status)
{
    requests_free(&run->received, status);
    requests_free(&run->sent, status);
    for (int i = 0; i < 2; i++)
        local_reduction_free(&run->reductions[i], status);
    parts_free(&run->own);
    free(run->memory);
    free(run->displs);
    free(run->at);
}

int reduce_scatter_multi_leader(struct hierarchy *on, const void *from, void *into, const int counts[],
                                const struct shape *shape, MPI_Op op, int64_t segment)
{
    struct multi_leader_reduce_scatter run = {.on = on,
                                              .all = from == MPI_IN_PLACE ? into : from,
                                              .counts = counts,
                                              .shape = shape,
                                              .op = op,
                                              .segment = segment};
    /* Step 1: every rank posts its receives from other sites. */
    int status = prepare_all(&run), now = 0;
    TRY(status, receive(&run));
    /* Step 2: the ranks of a site send each other the first segments that each is to sum. */
    int is_left = status == MPI_SUCCESS && prepare(&run, now);
    if (is_left)
        status = local_reduction_begin(&run.reductions[now], on, shape);
    for (; is_left && status == MPI_SUCCESS; now = !now) {
        /* Step 3: they send each other the next segments, sum those that have arrived, and send the sums to
         * their owners at other sites. */
        if ((is_left = prepare(&run, !now)))
            status = local_reduction_begin(&run.reductions[!now], on, shape);
        TRY(status, finish(&run, now));
    }
    /* Step 4: every rank combines the results of all sites for its block. */
    TRY(status, requests_wait(&run.received));
    TRY(status, combine(run.own.origin, on->sites, into, counts[on->rank], shape, op));
    TRY(status, requests_wait(&run.sent));
    free_all(&run, status);
    return status;
}
