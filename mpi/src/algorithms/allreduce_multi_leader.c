/* R/2 + s/B + one segment inside a site: of each segment every rank of a site adds up one part
 * (reduce-scatter), exchanges it with the ranks of other sites whose parts overlap it, and hands what the
 * sites come to to its own site (allgather). Several ranks carry in parallel, and none adds up or hands out
 * more than its part: where a site's network is no faster than the way to the others, one rank would have to
 * take in the message three times. `ahead` segments are added up before the first is handed out: so many as
 * cover the way there. */
#include "algorithms/algorithms.h"
#include "intra_site/local_reduction.h"
#include "topology/tags.h"
#include "transfer/requests.h"
#include "transfer/segments.h"

#include <stdlib.h>

struct multi_leader_allreduce {
    struct hierarchy *on;
    const void *from;
    void *into;
    const struct shape *shape;
    MPI_Op op;
    struct segments segments;
    /* Of the segment at hand: each local rank's part. */
    int *counts, *places;
    /* This rank's parts as each site has them, segment after segment; how many elements are added up, and
     * handed out. */
    struct parts parts;
    int64_t reduced, handed;
    struct requests sent, received;
    int next_sent, next_received;
    /* Of this segment and the next one; and what is handed out of them. */
    struct local_reduction reductions[2];
    struct requests handing[2];
    void **piece;
};

/* Parts begin at multiples of so many elements of a segment: MPIs add up vectors of up to so many floats at
 * once, and what is left over one by one, where the greatest of a number and of what is none may be the other
 * one. Sites of different sizes must find the same. */
#define TOGETHER 16

/* Where the part of rank r of `ranks` begins in segment i. */
static int share_at(const struct multi_leader_allreduce *run, int i, int ranks, int r)
{
    int64_t count = segment_count(&run->segments, i),
            at = (count * r / ranks + TOGETHER - 1) / TOGETHER * TOGETHER;
    return (int)(at < count && r < ranks ? at : count);
}

/* Cuts segment i for this site's ranks; how many elements this rank has. */
static int share_out(struct multi_leader_allreduce *run, int i)
{
    struct hierarchy *on = run->on;
    for (int r = 0; r < on->local_size; r++) {
        run->places[r] = share_at(run, i, on->local_size, r);
        run->counts[r] = share_at(run, i, on->local_size, r + 1) - run->places[r];
    }
    return run->counts[on->local_rank];
}

/* What this rank and rank r of site s both have of segment i, from where this rank's begins. */
static int overlap(const struct multi_leader_allreduce *run, int i, int s, int r, int *at)
{
    const struct hierarchy *on = run->on;
    int own = run->places[on->local_rank], end = own + run->counts[on->local_rank], ranks = site_size(on, s);
    int low = share_at(run, i, ranks, r), high = share_at(run, i, ranks, r + 1);
    low = low > own ? low : own;
    high = high < end ? high : end;
    *at = low - own;
    return high > low ? high - low : 0;
}

/* With each of whom this rank shares something of segment i, in one order at all ranks. */
#define FOR_EACH_OVERLAP(s, r, length, at)                                                \
    for (int s = 0; s < run->on->sites; s++)                                              \
        for (int r = 0, at, length; s != run->on->site && r < site_size(run->on, s); r++) \
            if ((length = overlap(run, i, s, r, &at)) > 0)

static int peer(const struct hierarchy *on, int s, int r) { return on->members[on->first[s] + r]; }

static int receive(struct multi_leader_allreduce *run, int i, int64_t before)
{
    int status = MPI_SUCCESS;
    FOR_EACH_OVERLAP(s, r, length, at)
    TRY(status,
        requests_receive(&run->received, run->on, element_at(run->parts.origin[s], before + at, run->shape),
                         length, run->shape->type, peer(run->on, s, r), TAG_ALLREDUCE));
    return status;
}

static int give(struct multi_leader_allreduce *run, int i)
{
    struct local_reduction *local = &run->reductions[i % 2];
    share_out(run, i);
    for (int r = 0; r < run->on->local_size; r++) {
        const void *from = run->from == MPI_IN_PLACE ? run->into : run->from;
        local->pieces[r] = element_at(from, segment_at(&run->segments, i) + run->places[r], run->shape);
        local->counts[r] = run->counts[r];
    }
    return local_reduction_begin(local, run->on, run->shape);
}

/* The next segment is on its way meanwhile. */
static int reduce_in_site(struct multi_leader_allreduce *run, int i)
{
    struct hierarchy *on = run->on;
    void *sum = element_at(run->parts.origin[on->site], run->reduced, run->shape);
    int status = i == 0 ? give(run, i) : MPI_SUCCESS;
    if (i + 1 < run->segments.pieces)
        TRY(status, give(run, i + 1));
    TRY(status, local_reduction_end(&run->reductions[i % 2], on, sum, run->shape, run->op));
    int own = share_out(run, i);
    FOR_EACH_OVERLAP(s, r, length, at)
    TRY(status, requests_send(&run->sent, on, element_at(sum, at, run->shape), length, run->shape->type,
                              peer(on, s, r), TAG_ALLREDUCE));
    run->reduced += own;
    return status;
}

/* Each rank's part of a segment to all of the site. */
static int spread(struct multi_leader_allreduce *run, int i, void *segment)
{
    struct hierarchy *on = run->on;
    struct requests *some = &run->handing[i % 2];
    const int *counts = run->counts, *places = run->places;
    int own = on->local_rank, status = requests_wait(some);
    for (int r = 0; r < on->local_size; r++)
        if (r != own && counts[r] > 0)
            TRY(status, requests_receive(some, on, element_at(segment, places[r], run->shape), counts[r],
                                         run->shape->type, peer(on, on->site, r), TAG_HANDED));
    for (int n = 1; n < on->local_size && counts[own] > 0; n++)
        TRY(status,
            requests_send(some, on, element_at(segment, places[own], run->shape), counts[own],
                          run->shape->type, peer(on, on->site, (own + n) % on->local_size), TAG_HANDED));
    return status;
}

static int hand_out(struct multi_leader_allreduce *run, int i)
{
    struct hierarchy *on = run->on;
    int own = share_out(run, i), status = MPI_SUCCESS;
    void *segment = element_at(run->into, segment_at(&run->segments, i), run->shape);
    FOR_EACH_OVERLAP(s, r, length, at)
    {
        TRY(status, requests_wait_for(&run->received, run->next_received++));
        /* What is still being sent must not change: it is used up. */
        TRY(status, requests_wait_for(&run->sent, run->next_sent++));
    }
    for (int s = 0; s < on->sites; s++)
        run->piece[s] = element_at(run->parts.origin[s], run->handed, run->shape);
    TRY(status,
        combine(on, run->piece, on->sites, element_at(segment, run->places[on->local_rank], run->shape), own,
                run->shape, run->op));
    run->handed += own;
    TRY(status, spread(run, i, segment));
    return status;
}

static int begin(struct multi_leader_allreduce *run)
{
    struct hierarchy *on = run->on;
    int64_t own = 0, most = 0;
    if (!(run->counts = malloc(2 * on->local_size * sizeof *run->counts)) ||
        !(run->piece = malloc(on->sites * sizeof *run->piece)))
        return MPI_ERR_NO_MEM;
    run->places = run->counts + on->local_size;
    for (int i = 0; i < run->segments.pieces; i++) {
        int count = share_out(run, i);
        own += count;
        most = count > most ? count : most;
    }
    int status = parts_make(&run->parts, on, own, run->shape, MADE);
    for (int i = 0; i < 2; i++)
        TRY(status, local_reduction_make(&run->reductions[i], on, most, run->shape));
    own = 0;
    for (int i = 0; i < run->segments.pieces; i++) {
        int count = share_out(run, i);
        TRY(status, receive(run, i, own));
        own += count;
    }
    return status;
}

int allreduce_multi_leader(struct hierarchy *on, const void *from, void *into, int count,
                           const struct shape *shape, MPI_Op op, int64_t segment, int ahead)
{
    struct multi_leader_allreduce run = {.on = on,
                                         .from = from,
                                         .into = into,
                                         .shape = shape,
                                         .op = op,
                                         .segments = segments_of(count, shape->size, segment)};
    int status = begin(&run);
    for (int i = 0; i < run.segments.pieces + ahead; i++) {
        if (i < run.segments.pieces)
            TRY(status, reduce_in_site(&run, i));
        if (i >= ahead)
            TRY(status, hand_out(&run, i - ahead));
    }
    for (int i = 0; i < 2; i++) {
        TRY(status, requests_wait(&run.handing[i]));
        requests_free(&run.handing[i], status);
        local_reduction_free(&run.reductions[i], status);
    }
    requests_free(&run.sent, status);
    requests_free(&run.received, status);
    parts_free(&run.parts);
    free(run.counts);
    free(run.piece);
    return status;
}
