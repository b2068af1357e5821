/* R/2 + n s/B + one segment inside a site: what a rank gets is added up by itself in its own site, in each
 * other one segment by segment by its ranks in turn, to whom the site's others send theirs, and which send it
 * there. What goes to other sites comes first, what the site's own ranks get while that is under way. In each
 * reduction every rank of a site adds up one segment, and the next reduction's segments are sent
 * meanwhile. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/local_reduction.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

#include <stdlib.h>

/* A rank takes in as many segments at once as its site has ranks. Where a site has more ranks than these, the
 * segments are smaller. */
#define WHOLE_SEGMENTS 8
#define MIN_SEGMENT (16 * 1024)

/* A segment of what rank `to` gets: `count` elements from its `at`-th. A count of 0 means that none is

 * left. */
struct piece {
    int to, count;
    int64_t at;
};

/* Which segment one of this site's ranks adds up next: counted from the first member of the next site. */
struct place {
    int member, segment;
};

struct multi_leader_reduce_scatter {
    struct hierarchy *on;
    /* This rank's elements for all ranks: counts[r] of them are for rank r, and begin at the at[r]-th. */
    const void *all;
    const int *counts;
    int64_t *at;
    const struct shape *shape;
    MPI_Op op;
    int64_t segment;
    /* How far each local rank has come. */
    struct place *displs;
    /* One reduction inside the site is added up while the other's segments are on their way. mine[i] is what
     * this rank adds up in reductions[i]. */
    struct local_reduction reductions[2];
    struct piece mine[2];
    /* What each site found for this rank. */
    struct parts own;
    /* What this rank found for ranks of other sites: `done` elements so far. `memory` is what to free. */
    void *found, *memory;
    int64_t done;
    struct requests received, sent;
};

/* The local rank that adds up, at a site, a segment of what rank `to` gets: `to` itself at its own site; at
 * others the ranks take turns. */
static int adder(const struct hierarchy *on, int site, int to, int segment)
{
    return on->site_of[to] == site ? on->local_rank_of[to]
                                   : (on->local_rank_of[to] + segment) % site_size(on, site);
}

/* Cuts what rank `to` gets into segments. */
static struct segments cut(const struct multi_leader_reduce_scatter *run, int to)
{
    return segments_of(run->counts[to], run->shape->size, run->segment);
}

/* The next segment that local rank r adds up. Those for other sites come first. */
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

/* Names what goes into reduction `number`: the next segment of each local rank. False when nothing is

 * left. */
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

/* Adds up this rank's segment of reduction `number`. What is for another site's rank goes there at once. */
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

/* Gets ready to receive each segment from each other site, whoever adds it up there. */
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

/* Cuts everything, and makes room for it. */
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
    /* Step 1: every rank gets ready for what other sites send it. */
    int status = prepare_all(&run), now = 0;
    TRY(status, receive(&run));
    /* Step 2: the ranks of a site send each other the first segments that each is to add up. */
    int is_left = status == MPI_SUCCESS && prepare(&run, now);
    if (is_left)
        status = local_reduction_begin(&run.reductions[now], on, shape);
    for (; is_left && status == MPI_SUCCESS; now = !now) {
        /* Step 3: they send each other the next ones, add up those that have come, and send the sums to the
         * ranks of other sites that get them. */
        if ((is_left = prepare(&run, !now)))
            status = local_reduction_begin(&run.reductions[!now], on, shape);
        TRY(status, finish(&run, now));
    }
    /* Step 4: every rank puts together what all sites found for it. */
    TRY(status, requests_wait(&run.received));
    TRY(status, combine(run.own.origin, on->sites, into, counts[on->rank], shape, op));
    TRY(status, requests_wait(&run.sent));
    free_all(&run, status);
    return status;
}
