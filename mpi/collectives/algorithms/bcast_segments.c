/* R/2 + s/B + one segment inside a site: the root sends the message to each other site once, in segments; the
 * leader there broadcasts each segment while the next is in transit. Where a site is reached faster through
 * another, the other site forwards the segments to it. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"
#include "common/binding/texts.h"

#include <stdlib.h>

/* Sends one segment to the sites to which this one forwards it. */
static int pass_on(struct hierarchy *on, const struct bytes *bytes, const struct segments *segments, int i,
                   int root, const int parent[], struct requests *some)
{
    int status = MPI_SUCCESS;
    for (int s = 0; s < on->sites; s++)
        if (parent[s] == on->site)
            TRY(status,
                requests_send(some, on, bytes->at + segment_at(segments, i), segment_count(segments, i),
                              handle.byte, leader(on, s, root), TAG_BCAST));
    return status;
}

static int from_root(struct hierarchy *on, const struct bytes *bytes, const struct segments *segments,
                     int root, const int parent[])
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    for (int i = 0; i < segments->pieces; i++)
        TRY(status, pass_on(on, bytes, segments, i, root, parent, &some));
    if (on->local_size > 1)
        TRY(status, intra_site_bcast(on, bytes->at, (int)bytes->length, handle.byte, on->local_rank));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}

static int to_site(struct hierarchy *on, const struct bytes *bytes, const struct segments *segments, int root,
                   const int parent[])
{
    struct requests some = {0}, passed = {0};
    int status = MPI_SUCCESS;
    if (on->local_rank == 0)
        for (int i = 0; i < segments->pieces; i++)
            TRY(status,
                requests_receive(&some, on, bytes->at + segment_at(segments, i), segment_count(segments, i),
                                 handle.byte, leader(on, parent[on->site], root), TAG_BCAST));
    for (int i = 0; i < segments->pieces; i++) {
        if (on->local_rank == 0)
            TRY(status, requests_wait_for(&some, i));
        if (on->local_rank == 0)
            TRY(status, pass_on(on, bytes, segments, i, root, parent, &passed));
        if (on->local_size > 1)
            TRY(status, intra_site_bcast(on, bytes->at + segment_at(segments, i), segment_count(segments, i),
                                         handle.byte, 0));
    }
    TRY(status, requests_wait(&passed));
    requests_free(&some, status);
    requests_free(&passed, status);
    return status;
}

int bcast_segments(struct hierarchy *on, void *buffer, int count, const struct shape *shape, int root,
                   int64_t segment)
{
    struct bytes bytes;
    int status = on->rank == root ? bytes_pack(buffer, count, shape, &bytes)
                                  : bytes_room(buffer, count, shape, &bytes);
    struct segments segments = segments_of(bytes.length, 1, segment);
    /* Sites may give different lengths for the same text; all must compute the same tree. */
    int64_t length = texts_may_differ(bytes.length) ? TEXTS_LONGEST : bytes.length;
    int *parent = malloc(on->sites * sizeof *parent);
    if (!parent)
        status = MPI_ERR_NO_MEM;
    else
        links_tree(on->links, on->sites, on->site_of[root], length, parent);
    if (on->rank == root)
        TRY(status, from_root(on, &bytes, &segments, root, parent));
    else if (on->site == on->site_of[root]) {
        if (on->local_size > 1)
            TRY(status,
                intra_site_bcast(on, bytes.at, (int)bytes.length, handle.byte, on->local_rank_of[root]));
    } else
        TRY(status, to_site(on, &bytes, &segments, root, parent));
    if (on->rank != root)
        TRY(status, bytes_unpack(&bytes, buffer, count, shape));
    bytes_free(&bytes);
    free(parent);
    return status;
}
