/* R/2 + n s/B + one flit inside a site: what a rank gets is added up, flit by flit, by one of each site's ranks, to whom the site's others send theirs; for
 * a rank of another site it sends it there. What goes to other sites comes first, what the site's own ranks get while that is under way. In
 * each turn every rank of a site adds up one flit, and the next turn's flits are sent meanwhile. */
#include "../combine.h"
#include "algorithms.h"

#include <stdlib.h>

/* A rank adds up as many flits at once as its site has ranks: of a site of more ranks than these, smaller ones. */
#define WHOLE_FLITS 8
#define LEAST_FLIT (16 * 1024)

/* Part of what rank `to` gets: `count` elements from its `at`-th; none are left where count is 0. */
struct piece {
    int to, count;
    int64_t at;
};

/* How far one of this site's ranks has come with what it adds up. */
struct place {
    int member, flit;
};

/* A piece for each of this site's ranks, and what they have of this rank's. */
struct turn {
    struct piece *pieces;
    struct parts parts;
    struct requests some;
    int is_last;
};

struct run {
    struct levels *on;
    const void *all;
    const int *counts;
    /* Where each rank's elements begin. */
    int64_t *at;
    const struct shape *shape;
    MPI_Op op;
    int64_t flit;
    struct place *places;
    struct turn turns[2];
    /* What the sites found for this rank, and what this rank found for those of other sites. */
    struct parts own;
    void *found, *memory;
    int64_t done;
    struct requests received, sent;
};

/* Which rank of a site adds up what a rank gets: itself, in its own. */
static int adder(const struct levels *on, int site, int to) { return on->local_rank_of[to] % site_size(on, site); }

static struct flits cut(const struct run *run, int to) { return flits_of(run->counts[to], run->shape->size, run->flit); }

/* The next one that local rank r adds up: to other sites first, and by turns of their ranks. */
static struct piece next(struct run *run, int r)
{
    const struct levels *on = run->on;
    for (struct place *place = &run->places[r]; place->member < on->size; place->member++, place->flit = 0) {
        int to = on->members[(on->first[on->site + 1] + place->member) % on->size], flit = place->flit;
        struct flits flits = cut(run, to);
        if (run->counts[to] == 0 || flit == flits.pieces || adder(on, on->site, to) != r)
            continue;
        place->flit++;
        return (struct piece){.to = to, .count = flit_count(&flits, flit), .at = flit_at(&flits, flit)};
    }
    return (struct piece){0};
}

static int begin(struct run *run, struct turn *turn)
{
    struct levels *on = run->on;
    const int *here = &on->members[on->first[on->site]];
    int status = MPI_SUCCESS, own = on->local_rank;
    turn->is_last = 1;
    for (int r = 0; r < on->local_size; r++) {
        turn->pieces[r] = next(run, r);
        turn->is_last &= turn->pieces[r].count == 0;
    }
    for (int r = 0; r < on->local_size; r++)
        if (r != own && turn->pieces[own].count > 0)
            TRY(status, requests_receive(&turn->some, on, turn->parts.origin[r], turn->pieces[own].count, run->shape->type, here[r], TAG_HERE));
    /* The next rank first, so that not all send to the same one. */
    for (int i = 1; i < on->local_size; i++) {
        int r = (own + i) % on->local_size;
        const struct piece *piece = &turn->pieces[r];
        if (piece->count > 0)
            TRY(status, requests_send(&turn->some, on, element_at(run->all, run->at[piece->to] + piece->at, run->shape), piece->count,
                                      run->shape->type, here[r], TAG_HERE));
    }
    return status;
}

static int end(struct run *run, struct turn *turn)
{
    struct levels *on = run->on;
    const struct piece *piece = &turn->pieces[on->local_rank];
    int is_here = piece->to == on->rank, status = requests_wait(&turn->some);
    if (piece->count == 0)
        return status;
    void *own = element_at(run->all, run->at[piece->to] + piece->at, run->shape), **parts = turn->parts.origin;
    void *sum = is_here ? element_at(run->own.origin[on->site], piece->at, run->shape) : element_at(run->found, run->done, run->shape);
    /* The last part alone is written to. */
    if (on->local_rank == on->local_size - 1)
        TRY(status, elements_copy(on, own, parts[on->local_rank], piece->count, run->shape));
    else
        parts[on->local_rank] = own;
    TRY(status, combine(on, parts, on->local_size, sum, piece->count, run->shape, run->op));
    if (!is_here) {
        TRY(status, requests_send(&run->sent, on, sum, piece->count, run->shape->type, piece->to, TAG_REDUCE_SCATTER));
        run->done += piece->count;
    }
    return status;
}

static int receive(struct run *run)
{
    struct levels *on = run->on;
    struct flits flits = cut(run, on->rank);
    int status = MPI_SUCCESS;
    for (int s = 0; s < on->sites && run->counts[on->rank] > 0; s++)
        for (int i = 0; s != on->site && i < flits.pieces; i++)
            TRY(status, requests_receive(&run->received, on, element_at(run->own.origin[s], flit_at(&flits, i), run->shape), flit_count(&flits, i),
                                         run->shape->type, on->members[on->first[s] + adder(on, s, on->rank)], TAG_REDUCE_SCATTER));
    return status;
}

/* A part for each of this site's ranks. */
static int turn_make(struct run *run, struct turn *turn, int64_t most)
{
    int ranks = run->on->local_size;
    turn->pieces = calloc(ranks, sizeof *turn->pieces);
    return turn->pieces ? parts_make_for(&turn->parts, ranks, most, run->shape) : MPI_ERR_NO_MEM;
}

static int run_make(struct run *run)
{
    const struct levels *on = run->on;
    int64_t mine = 0, most = 0, flit = run->flit;
    if (on->largest > WHOLE_FLITS)
        flit = flit * WHOLE_FLITS / on->largest;
    run->flit = flit > LEAST_FLIT ? flit : LEAST_FLIT;
    run->at = malloc((on->size + 1) * sizeof *run->at);
    run->places = calloc(on->local_size, sizeof *run->places);
    if (!run->at || !run->places)
        return MPI_ERR_NO_MEM;
    run->at[0] = 0;
    for (int i = 0; i < on->size; i++) {
        struct flits flits = cut(run, i);
        int64_t longest = (run->counts[i] + flits.pieces - 1) / flits.pieces;
        run->at[i + 1] = run->at[i] + run->counts[i];
        most = longest > most ? longest : most;
        if (on->site_of[i] != on->site && adder(on, on->site, i) == on->local_rank)
            mine += run->counts[i];
    }
    if (!(run->memory = elements(mine, run->shape, &run->found)))
        return MPI_ERR_NO_MEM;
    int status = parts_make(&run->own, on, run->counts[on->rank], run->shape, MADE);
    for (int i = 0; i < 2; i++)
        TRY(status, turn_make(run, &run->turns[i], most));
    return status;
}

static void run_free(struct run *run, int status)
{
    requests_free(&run->received, status);
    requests_free(&run->sent, status);
    for (int i = 0; i < 2; i++) {
        requests_free(&run->turns[i].some, status);
        parts_free(&run->turns[i].parts);
        free(run->turns[i].pieces);
    }
    parts_free(&run->own);
    free(run->memory);
    free(run->places);
    free(run->at);
}

int reduce_scatter_lanes(struct levels *on, const void *from, void *into, const int counts[], const struct shape *shape, MPI_Op op,
                         int64_t flit)
{
    struct run run = {.on = on, .all = from == MPI_IN_PLACE ? into : from, .counts = counts, .shape = shape, .op = op, .flit = flit};
    int status = run_make(&run), now = 0;
    TRY(status, receive(&run));
    TRY(status, begin(&run, &run.turns[now]));
    for (; status == MPI_SUCCESS && !run.turns[now].is_last; now = !now) {
        status = begin(&run, &run.turns[!now]);
        TRY(status, end(&run, &run.turns[now]));
    }
    TRY(status, requests_wait(&run.received));
    TRY(status, combine(on, run.own.origin, on->sites, into, counts[on->rank], shape, op));
    TRY(status, requests_wait(&run.sent));
    run_free(&run, status);
    return status;
}
