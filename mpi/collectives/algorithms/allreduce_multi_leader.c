/* R/2 + s/B + one segment inside a site. In each segment, every rank of a site sums one part
 * (reduce-scatter), exchanges it with the ranks of other sites whose parts overlap it, and sends the combined
 * result to its own site (allgather). Several ranks transfer in parallel, and none sums or hands out more
 * than its part: with one leader, in a site whose network is no faster than the link to the others, that
 * leader would have to receive the message three times. `ahead` segments are summed before the first is
 * handed out: enough to cover the link's latency. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/local_reduction.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

#include <stdlib.h>

struct multi_leader_allreduce {
    struct hierarchy *on;
    const void *from;
    void *into;
    const struct shape *shape;
    MPI_Op op;
    struct segments segments;
    /* How the current segment is cut: local rank r's part has counts[r] elements and begins at displs[r]. */
    int *counts, *displs;
    /* Each site's result for this rank's parts, segment after segment. */
    struct parts parts;
    /* How many elements of `parts` this site has summed, and how many have been handed out. */
    int64_t reduced, handed;
    /* Messages to and from other sites, and the next one of each to wait for. */
    struct requests sent, received;
    int next_sent, next_received;
    /* Segment i uses entry i % 2 for its reduction inside the site, and for the messages that hand it out. */
    struct local_reduction reductions[2];
    struct requests handing[2];
    /* Room for one pointer per site. */
    void **piece;
};

/* Parts begin at multiples of this many elements of a segment. MPIs reduce vectors of up to this many floats
 * at once and the remainder one by one, and the two ways may differ in the maximum of a number and a NaN.
 * Sites of different sizes must get the same result. */
#define TOGETHER 16

/* Where the part of rank r (of `ranks`) begins in segment i. */
static int share_at(const struct multi_leader_allreduce *run, int i, int ranks, int r)
{
    int64_t count = segment_count(&run->segments, i),
            at = (count * r / ranks + TOGETHER - 1) / TOGETHER * TOGETHER;
    return (int)(at < count && r < ranks ? at : count);
}

/* Cuts segment i among this site's ranks. Returns the number of elements in this rank's part. */
static int share_out(struct multi_leader_allreduce *run, int i)
{
    struct hierarchy *on = run->on;
    for (int r = 0; r < on->local_size; r++) {
        run->displs[r] = share_at(run, i, on->local_size, r);
        run->counts[r] = share_at(run, i, on->local_size, r + 1) - run->displs[r];
    }
    return run->counts[on->local_rank];
}

/* The number of elements of segment i that this rank shares with member m of another site; they begin at *at
 * in this rank's part. It is 0 for ranks of this rank's own site. */
static int overlap(const struct multi_leader_allreduce *run, int i, int m, int *at)
{
    const struct hierarchy *on = run->on;
    int site = on->site_of[on->members[m]], r = m - on->first[site], ranks = site_size(on, site);
    int own = run->displs[on->local_rank], end = own + run->counts[on->local_rank];
    int low = share_at(run, i, ranks, r), high = share_at(run, i, ranks, r + 1);
    low = low > own ? low : own;
    high = high < end ? high : end;
    *at = low - own;
    return site != on->site && high > low ? high - low : 0;
}

/* Step 1: this rank posts receives for the other sites' results for its part of segment i. `before` is the
 * number of elements in its parts of earlier segments. */
static int receive(struct multi_leader_allreduce *run, int i, int64_t before)
{
    struct hierarchy *on = run->on;
    int status = MPI_SUCCESS;
    for (int m = 0, at; m < on->size; m++) {
        int length = overlap(run, i, m, &at), giver = on->members[m];
        if (length == 0)
            continue;
        void *found = element_at(run->parts.origin[on->site_of[giver]], before + at, run->shape);
        TRY(status,
            requests_receive(&run->received, on, found, length, run->shape->type, giver, TAG_ALLREDUCE));
    }
    return status;
}

/* Step 2: each rank sends the other ranks of its site their parts of segment i. */
static int give(struct multi_leader_allreduce *run, int i)
{
    struct local_reduction *local = &run->reductions[i % 2];
    share_out(run, i);
    for (int r = 0; r < run->on->local_size; r++) {
        const void *from = run->from == MPI_IN_PLACE ? run->into : run->from;
        local->pieces[r] = element_at(from, segment_at(&run->segments, i) + run->displs[r], run->shape);
        local->counts[r] = run->counts[r];
    }
    return local_reduction_begin(local, run->on, run->shape);
}

/* Step 3: each rank sums its part of segment i while the next segment is in transit. */
static int reduce_in_site(struct multi_leader_allreduce *run, int i, void *sum)
{
    int status = i == 0 ? give(run, i) : MPI_SUCCESS;
    if (i + 1 < run->segments.pieces)
        TRY(status, give(run, i + 1));
    TRY(status, local_reduction_end(&run->reductions[i % 2], run->on, sum, run->shape, run->op));
    return status;
}

/* Step 4: each rank sends its sum to the ranks of other sites that have the same elements. */
static int send_across(struct multi_leader_allreduce *run, int i, void *sum)
{
    struct hierarchy *on = run->on;
    int own = share_out(run, i), status = MPI_SUCCESS;
    for (int m = 0, at; m < on->size; m++) {
        int length = overlap(run, i, m, &at);
        if (length > 0)
            TRY(status, requests_send(&run->sent, on, element_at(sum, at, run->shape), length,
                                      run->shape->type, on->members[m], TAG_ALLREDUCE));
    }
    run->reduced += own;
    return status;
}

/* Step 5: each rank waits for the sums of the other sites, and combines all of them in its part of the
 * result. */
static int combine_sites(struct multi_leader_allreduce *run, int i, void *segment)
{
    struct hierarchy *on = run->on;
    int own = share_out(run, i), status = MPI_SUCCESS;
    for (int m = 0, at; m < on->size; m++) {
        if (overlap(run, i, m, &at) == 0)
            continue;
        TRY(status, requests_wait_for(&run->received, run->next_received++));
        /* `combine` may overwrite this site's sum, so it must have been sent. */
        TRY(status, requests_wait_for(&run->sent, run->next_sent++));
    }
    for (int s = 0; s < on->sites; s++)
        run->piece[s] = element_at(run->parts.origin[s], run->handed, run->shape);
    void *result = element_at(segment, run->displs[on->local_rank], run->shape);
    TRY(status, combine(run->piece, on->sites, result, own, run->shape, run->op));
    run->handed += own;
    return status;
}

/* Step 6: each rank sends its part of the result to the other ranks of its site, and receives theirs. */
static int hand_out(struct multi_leader_allreduce *run, int i, void *segment)
{
    struct hierarchy *on = run->on;
    struct requests *some = &run->handing[i % 2];
    const int *counts = run->counts, *displs = run->displs, *here = &on->members[on->first[on->site]];
    int own = on->local_rank, status = requests_wait(some);
    for (int r = 0; r < on->local_size; r++)
        if (r != own && counts[r] > 0)
            TRY(status, requests_receive(some, on, element_at(segment, displs[r], run->shape), counts[r],
                                         run->shape->type, here[r], TAG_HANDED));
    /* Each rank starts with the rank after itself, so that not all send to the same rank at once. */
    for (int n = 1; n < on->local_size && counts[own] > 0; n++)
        TRY(status, requests_send(some, on, element_at(segment, displs[own], run->shape), counts[own],
                                  run->shape->type, here[(own + n) % on->local_size], TAG_HANDED));
    return status;
}

/* Allocates everything, and takes step 1 for all segments, so that every message finds its receive posted. */
static int begin(struct multi_leader_allreduce *run)
{
    struct hierarchy *on = run->on;
    int64_t own = 0, most = 0;
    if (!(run->counts = malloc(2 * on->local_size * sizeof *run->counts)) ||
        !(run->piece = malloc(on->sites * sizeof *run->piece)))
        return MPI_ERR_NO_MEM;
    run->displs = run->counts + on->local_size;
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

/* Waits until the results have been handed out, and frees everything. */
static int end(struct multi_leader_allreduce *run, int status)
{
    for (int i = 0; i < 2; i++) {
        TRY(status, requests_wait(&run->handing[i]));
        requests_free(&run->handing[i], status);
        local_reduction_free(&run->reductions[i], status);
    }
    requests_free(&run->sent, status);
    requests_free(&run->received, status);
    parts_free(&run->parts);
    free(run->counts);
    free(run->piece);
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
        /* Steps 2 to 4: each rank sums its part of segment i for its site, and sends it to the other
         * sites. */
        if (i < run.segments.pieces && status == MPI_SUCCESS) {
            void *sum = element_at(run.parts.origin[on->site], run.reduced, shape);
            status = reduce_in_site(&run, i, sum);
            TRY(status, send_across(&run, i, sum));
        }
        /* Steps 5 and 6: the other sites' results for the segment sent `ahead` segments ago have arrived
         * meanwhile. Each rank combines them with its part, and hands the part out in its site. */
        if (i >= ahead && status == MPI_SUCCESS) {
            void *result = element_at(into, segment_at(&run.segments, i - ahead), shape);
            status = combine_sites(&run, i - ahead, result);
            TRY(status, hand_out(&run, i - ahead, result));
        }
    }
    return end(&run, status);
}
