/* R/2 + n s/B + one flit inside a site: every rank sends its part to one rank of each other site at once, in flits, with nothing
 * done inside the site before; the site's own parts are handed out while these are under way, and what came flit by flit. Several
 * ranks carry in parallel. */
#include "algorithms.h"

#include <stdlib.h>
#include <string.h>

/* Which local rank of a site takes what a rank of another sends. */
static int taker(const struct levels *on, int member, int site)
{
    return on->local_rank_of[on->members[member]] % site_size(on, site);
}

static int64_t cut(int64_t length, int piece, int pieces)
{
    return length / pieces * piece + length % pieces * piece / pieces;
}

/* Whether local rank r gives part m to its site. */
static int gives(const struct levels *on, int r, int m, int own)
{
    int is_here = on->site_of[on->members[m]] == on->site;
    return own ? is_here && on->local_rank_of[on->members[m]] == r : !is_here && taker(on, m, on->site) == r;
}

/* Hands out piece i of the parts of this site (`own`), or of those that its ranks took from others, in the order of members. */
static int hand_out(struct levels *on, const int64_t lengths[], const int64_t room_at[], char *room, int own, int i, int pieces,
                    char *scratch, int *counts)
{
    int *places = counts + on->local_size;
    int total = 0;
    for (int r = 0; r < on->local_size; r++) {
        places[r] = total;
        counts[r] = 0;
        for (int m = 0; m < on->size; m++) {
            if (gives(on, r, m, own)) {
                int64_t from = cut(lengths[m], i, pieces), to = cut(lengths[m], i + 1, pieces);
                if (r == on->local_rank)
                    memcpy(scratch + places[r] + counts[r], room + room_at[m] + from, to - from);
                counts[r] += (int)(to - from);
            }
        }
        total += counts[r];
    }
    int status = real.Allgatherv(MPI_IN_PLACE, 0, handle.byte, scratch, counts, places, handle.byte, on->local);
    for (int r = 0; r < on->local_size && status == MPI_SUCCESS; r++) {
        const char *at = scratch + places[r];
        for (int m = 0; m < on->size; m++) {
            if (gives(on, r, m, own)) {
                int64_t from = cut(lengths[m], i, pieces), to = cut(lengths[m], i + 1, pieces);
                if (r != on->local_rank)
                    memcpy(room + room_at[m] + from, at, to - from);
                at += to - from;
            }
        }
    }
    return status;
}

int allgather_lanes(struct levels *on, const char *from, const int64_t lengths[], const int64_t room_at[], char *room,
                    int64_t flit)
{
    struct requests sent = {0}, received = {0};
    int status = MPI_SUCCESS;
    int own = on->first[on->site] + on->local_rank;
    int64_t longest = 1, sum = 0;
    for (int m = 0; m < on->size; m++) {
        longest = lengths[m] > longest ? lengths[m] : longest;
        sum += lengths[m];
    }
    int pieces = flits_of(longest, 1, flit).pieces;
    char *scratch = malloc(sum + 1);
    int *counts = malloc(2 * on->local_size * sizeof *counts);
    int *last = calloc(pieces, sizeof *last);
    if (!scratch || !counts || !last)
        status = MPI_ERR_NO_MEM;
    if (from != room + room_at[own])
        memcpy(room + room_at[own], from, lengths[own]);
    for (int i = 0; i < pieces && status == MPI_SUCCESS; i++) {
        for (int m = 0; m < on->size; m++) {
            int there = on->site_of[on->members[m]] != on->site;
            int64_t at = cut(lengths[m], i, pieces), length = cut(lengths[m], i + 1, pieces) - at;
            if (there && taker(on, m, on->site) == on->local_rank && length > 0)
                TRY(status, requests_receive(&received, on, room + room_at[m] + at, length, handle.byte, on->members[m],
                                             TAG_ALLGATHER));
        }
        last[i] = received.count;
    }
    for (int i = 0; i < pieces && status == MPI_SUCCESS; i++)
        for (int s = 0; s < on->sites; s++) {
            int64_t at = cut(lengths[own], i, pieces), length = cut(lengths[own], i + 1, pieces) - at;
            if (s != on->site && length > 0)
                TRY(status, requests_send(&sent, on, room + room_at[own] + at, length, handle.byte,
                                          on->members[on->first[s] + taker(on, own, s)], TAG_ALLGATHER));
        }
    if (on->local_size > 1)
        TRY(status, hand_out(on, lengths, room_at, room, 1, 0, 1, scratch, counts));
    for (int i = 0, next = 0; i < pieces && status == MPI_SUCCESS; i++) {
        while (next < last[i])
            TRY(status, requests_wait_for(&received, next)), next++;
        if (on->local_size > 1)
            TRY(status, hand_out(on, lengths, room_at, room, 0, i, pieces, scratch, counts));
    }
    requests_free(&received, status);
    requests_free(&sent, status);
    free(scratch);
    free(counts);
    free(last);
    return status;
}
