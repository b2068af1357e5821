/* R/2 + n s/B + one segment inside a site: what a rank gets is added up by itself in its own site, in each
 * other one segment by segment by its ranks in turn, to whom the site's others send theirs, and which send it
 * there. What goes to other sites comes first, what the site's own ranks get while that is under way. In each
 * reduction every rank of a site adds up one segment, and the next reduction's segments are sent
 * meanwhile. */
#include "algorithms/algorithms.h"
#include "intra_site/local_reduction.h"
#include "topology/tags.h"
#include "transfer/requests.h"
#include "transfer/segments.h"

#include <stdlib.h>

/* A rank takes in as many segments at once as its site has ranks: of a site of more ranks than these, smaller
 * ones. */
#define WHOLE_SEGMENTS 8
#define MIN_SEGMENT (16 * 1024)

/* Part of what rank `to` gets: `count` elements from its `at`-th; none are left where count is 0. */
struct piece {
    int to, count;
    int64_t at;
};

/* How far one of this site's ranks has come with what it adds up. */
struct place {
    int member, segment;
};

struct multi_leader_reduce_scatter {
    struct hierarchy *on;
    const void *all;
    const int *counts;
    /* Where each rank's elements begin. */
    int64_t *at;
    const struct shape *shape;
    MPI_Op op;
    int64_t segment;
    struct place *places;
    struct local_reduction reductions[2];
    /* What this rank adds up in each of them. */
    struct piece mine[2];
    /* What the sites found for this rank, and what this rank found for those of other sites. */
    struct parts own;
    void *found, *memory;
    int64_t done;
    struct requests received, sent;
};

/* Which rank of a site adds up a segment of what a rank gets: itself, in its own; in others all do by
 * reductions. */
static int adder(const struct hierarchy *on, int site, int to, int segment)
{
    return on->site_of[to] == site ? on->local_rank_of[to]
                                   : (on->local_rank_of[to] + segment) % site_size(on, site);
}

static struct segments cut(const struct multi_leader_reduce_scatter *run, int to)
{
    return segments_of(run->counts[to], run->shape->size, run->segment);
}

/* The next one that local rank r adds up: to other sites first, and to their ranks one after the other. */
static struct piece next(struct multi_leader_reduce_scatter *run, int r)
{
    const struct hierarchy *on = run->on;
    for (struct place *place = &run->places[r]; place->member < on->size;
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

/* False when nothing is left. */
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

static int prepare_all(struct multi_leader_reduce_scatter *run)
{
    const struct hierarchy *on = run->on;
    int64_t mine = 0, most = 0, smaller = run->segment * WHOLE_SEGMENTS / on->largest;
    if (on->largest > WHOLE_SEGMENTS && run->segment > MIN_SEGMENT)
        run->segment = smaller > MIN_SEGMENT ? smaller : MIN_SEGMENT;
    run->at = malloc((on->size + 1) * sizeof *run->at);
    run->places = calloc(on->local_size, sizeof *run->places);
    if (!run->at || !run->places)
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
    free(run->places);
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
    int status = prepare_all(&run), now = 0;
    TRY(status, receive(&run));
    int is_left = status == MPI_SUCCESS && prepare(&run, now);
    if (is_left)
        status = local_reduction_begin(&run.reductions[now], on, shape);
    for (; is_left && status == MPI_SUCCESS; now = !now) {
        if ((is_left = prepare(&run, !now)))
            status = local_reduction_begin(&run.reductions[!now], on, shape);
        TRY(status, finish(&run, now));
    }
    TRY(status, requests_wait(&run.received));
    TRY(status, combine(on, run.own.origin, on->sites, into, counts[on->rank], shape, op));
    TRY(status, requests_wait(&run.sent));
    free_all(&run, status);
    return status;
}
