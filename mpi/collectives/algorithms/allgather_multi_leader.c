/* R/2 + n s/B + one segment inside a site: every rank sends its part to one rank of each other site at once,
 * in segments, and to the ranks of its own; who gets a segment from another site sends it on to those as soon
 * as it is there. Everything goes from its place to its place, several ranks carry in parallel, and nobody
 * waits for a step of the others. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

/* The rank of a site that takes what member `member` of another site sends. */
static int taker(const struct hierarchy *on, int member, int site)
{
    return on->members[on->first[site] + on->local_rank_of[on->members[member]] % site_size(on, site)];
}

/* Where piece `piece` of `pieces` of a part begins. */
static int64_t cut(int64_t length, int piece, int pieces)
{
    return length / pieces * piece + length % pieces * piece / pieces;
}

/* Sends piece i of part m to the other ranks of this site. */
static int hand_on(struct hierarchy *on, struct requests *sent, const char *room, int64_t at, int64_t length,
                   int m)
{
    int status = MPI_SUCCESS;
    for (int r = 1; r < on->local_size; r++) {
        /* The next rank first, so that not all send to the same one. */
        int to = on->members[on->first[on->site] + (on->local_rank + r) % on->local_size];
        TRY(status, requests_send(sent, on, room + at, length, handle.byte, to, TAG_PART + m % MAX_PARTS));
    }
    return status;
}

int allgather_multi_leader(struct hierarchy *on, const int64_t lengths[], const int64_t room_at[], char *room,
                           int64_t segment)
{
    struct requests sent = {0}, taken = {0}, received = {0};
    int status = MPI_SUCCESS;
    int own = on->first[on->site] + on->local_rank;
    int64_t longest = 1;
    for (int m = 0; m < on->size; m++)
        longest = lengths[m] > longest ? lengths[m] : longest;
    int pieces = segments_of(longest, 1, segment).pieces;
    /* Step 1: every rank gets ready to receive. A part of its own site comes whole, from whom it belongs to.
     * A part of another site comes in pieces: from there, where this rank takes them for its site, or else
     * from the rank of its site that does. */
    for (int i = 0; i < pieces; i++)
        for (int m = 0; m < on->size; m++) {
            int giver = on->members[m], there = on->site_of[giver] != on->site;
            int whole = !there && i == 0;
            int64_t at = cut(lengths[m], i, pieces), length = cut(lengths[m], i + 1, pieces) - at;
            int by = there ? taker(on, m, on->site) : giver;
            if (there && by == on->rank && length > 0)
                TRY(status, requests_receive(&taken, on, room + room_at[m] + at, length, handle.byte, giver,
                                             TAG_ALLGATHER));
            else if (whole && m != own && lengths[m] > 0)
                TRY(status, requests_receive(&received, on, room + room_at[m], lengths[m], handle.byte, by,
                                             TAG_PART + m % MAX_PARTS));
            else if (there && by != on->rank && length > 0)
                TRY(status, requests_receive(&received, on, room + room_at[m] + at, length, handle.byte, by,
                                             TAG_PART + m % MAX_PARTS));
        }
    /* Step 2: every rank sends its part to one rank of each other site, in pieces, and whole to its own. */
    for (int i = 0; i < pieces; i++)
        for (int s = 0; s < on->sites; s++) {
            int64_t at = cut(lengths[own], i, pieces), length = cut(lengths[own], i + 1, pieces) - at;
            if (s != on->site && length > 0)
                TRY(status, requests_send(&sent, on, room + room_at[own] + at, length, handle.byte,
                                          taker(on, own, s), TAG_ALLGATHER));
        }
    if (lengths[own] > 0)
        TRY(status, hand_on(on, &sent, room, room_at[own], lengths[own], own));
    /* Step 3: whoever has taken a piece from another site sends it on to its own as soon as it is there. */
    for (int i = 0, next = 0; i < pieces; i++)
        for (int m = 0; m < on->size; m++) {
            int64_t at = cut(lengths[m], i, pieces), length = cut(lengths[m], i + 1, pieces) - at;
            if (on->site_of[on->members[m]] == on->site || taker(on, m, on->site) != on->rank || length == 0)
                continue;
            TRY(status, requests_wait_for(&taken, next++));
            TRY(status, hand_on(on, &sent, room, room_at[m] + at, length, m));
        }
    TRY(status, requests_wait(&received));
    TRY(status, requests_wait(&sent));
    requests_free(&taken, status);
    requests_free(&received, status);
    requests_free(&sent, status);
    return status;
}
