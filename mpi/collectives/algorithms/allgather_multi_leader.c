/* R/2 + n s/B + one segment inside a site: every rank at once sends its part in segments to one rank of each
 * other site, and to the ranks of its own site. A rank that receives a segment from another site forwards it
 * to the ranks of its own site as soon as it arrives. Data goes directly between the user's buffers, several
 * ranks transfer in parallel, and no rank waits for a step of the others. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

/* The rank of `site` that receives the part of member `member` of another site. */
static int taker(const struct hierarchy *on, int member, int site)
{
    return on->members[on->first[site] + on->local_rank_of[on->members[member]] % site_size(on, site)];
}

/* The offset of piece `piece` in a part that is cut into `pieces`. */
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
        /* Each rank starts with the rank after itself, so that not all send to the same rank at once. */
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
    /* Step 1: every rank posts its receives. A part of its own site arrives whole, from its owner. A part of
     * another site arrives in pieces: from its owner if this rank is the taker for its site, otherwise from
     * the taker. */
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
    /* Step 2: every rank sends its part in pieces to one rank of each other site, and whole to the ranks of
     * its own site. */
    for (int i = 0; i < pieces; i++)
        for (int s = 0; s < on->sites; s++) {
            int64_t at = cut(lengths[own], i, pieces), length = cut(lengths[own], i + 1, pieces) - at;
            if (s != on->site && length > 0)
                TRY(status, requests_send(&sent, on, room + room_at[own] + at, length, handle.byte,
                                          taker(on, own, s), TAG_ALLGATHER));
        }
    if (lengths[own] > 0)
        TRY(status, hand_on(on, &sent, room, room_at[own], lengths[own], own));
    /* Step 3: each taker forwards a piece from another site to the ranks of its own as soon as it arrives. */
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
