/* R/2 + s/B + one segment inside a site: each site reduces segment after segment to its leader, which sends
 * each to the root; the root combines the sites' results. Where the root is reached faster through other
 * sites, these forward the segments unchanged, so the result does not depend on the routes. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/segments.h"

#include <stdlib.h>

/* The tag of a site's result identifies the site. */
#define TAG_OF(site) (TAG_PART + (site) % MAX_PARTS)

/* The last site before `to` on the path from `site` to the root; -1 if the path does not pass through
 * `to`. */
static int last_before(const int parent[], int site, int to)
{
    for (; site >= 0; site = parent[site])
        if (parent[site] == to)
            return site;
    return -1;
}

static int at_root(struct hierarchy *on, const void *from, void *into, const struct shape *shape, MPI_Op op,
                   int root, const struct segments *segments, const int parent[])
{
    struct requests some = {0};
    struct parts parts = {0};
    void **piece = NULL;
    int status = parts_make(&parts, on, segments->count, shape, into);
    if (status == MPI_SUCCESS && !(piece = malloc(on->sites * sizeof *piece)))
        status = MPI_ERR_NO_MEM;
    for (int i = 0; i < segments->pieces; i++)
        for (int s = 0; s < on->sites; s++)
            if (s != on->site)
                TRY(status,
                    requests_receive(&some, on, element_at(parts.origin[s], segment_at(segments, i), shape),
                                     segment_count(segments, i), shape->type,
                                     leader(on, last_before(parent, s, on->site), root), TAG_OF(s)));
    for (int i = 0; i < segments->pieces; i++) {
        TRY(status, intra_site_reduce(on, element_at(from, segment_at(segments, i), shape),
                                      element_at(into, segment_at(segments, i), shape),
                                      segment_count(segments, i), shape->type, op, on->local_rank));
    }
    for (int i = 0, next = 0; i < segments->pieces; i++) {
        for (int s = 0; s < on->sites; s++) {
            if (s != on->site)
                TRY(status, requests_wait_for(&some, next++));
            if (status == MPI_SUCCESS)
                piece[s] = element_at(parts.origin[s], segment_at(segments, i), shape);
        }
        TRY(status, combine(piece, on->sites, element_at(into, segment_at(segments, i), shape),
                            segment_count(segments, i), shape, op));
    }
    requests_free(&some, status);
    parts_free(&parts);
    free(piece);
    return status;
}

/* What other sites send to the root through this one. */
struct passing {
    struct requests received, sent;
    void *memory, *origin;
};

static void *passing_at(const struct passing *this, const struct segments *segments,
                        const struct shape *shape, int which, int i)
{
    return element_at(this->origin, which * segments->count + segment_at(segments, i), shape);
}

static int passing_begin(struct passing *this, struct hierarchy *on, const struct segments *segments,
                         const struct shape *shape, int root, const int parent[])
{
    int status = MPI_SUCCESS, sites = 0;
    for (int s = 0; s < on->sites; s++)
        sites += last_before(parent, s, on->site) >= 0;
    if (sites > 0 && !(this->memory = elements(sites * segments->count, shape, &this->origin)))
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < segments->pieces; i++)
        for (int s = 0, at = 0; s < on->sites; s++) {
            int before = last_before(parent, s, on->site);
            if (before >= 0)
                TRY(status, requests_receive(&this->received, on, passing_at(this, segments, shape, at++, i),
                                             segment_count(segments, i), shape->type,
                                             leader(on, before, root), TAG_OF(s)));
        }
    return status;
}

static int passing_end(struct passing *this, struct hierarchy *on, const struct segments *segments,
                       const struct shape *shape, int root, const int parent[], int status)
{
    for (int i = 0, next = 0; i < segments->pieces; i++)
        for (int s = 0, at = 0; s < on->sites; s++) {
            if (last_before(parent, s, on->site) < 0)
                continue;
            TRY(status, requests_wait_for(&this->received, next++));
            TRY(status, requests_send(&this->sent, on, passing_at(this, segments, shape, at++, i),
                                      segment_count(segments, i), shape->type,
                                      leader(on, parent[on->site], root), TAG_OF(s)));
        }
    TRY(status, requests_wait(&this->sent));
    requests_free(&this->received, status);
    requests_free(&this->sent, status);
    free(this->memory);
    return status;
}

/* What every rank other than the root does. */
static int to_root(struct hierarchy *on, const void *from, const struct shape *shape, MPI_Op op, int root,
                   const struct segments *segments, const int parent[])
{
    struct requests some = {0};
    struct passing passing = {0};
    int status = MPI_SUCCESS, to = leader(on, on->site, root);
    void *memory = NULL, *found = NULL;
    if (on->rank == to) {
        status = passing_begin(&passing, on, segments, shape, root, parent);
        if (!(memory = elements(segments->count, shape, &found)))
            status = MPI_ERR_NO_MEM;
    }
    for (int i = 0; i < segments->pieces; i++) {
        void *here = found ? element_at(found, segment_at(segments, i), shape) : NULL;
        TRY(status, intra_site_reduce(on, element_at(from, segment_at(segments, i), shape), here,
                                      segment_count(segments, i), shape->type, op, on->local_rank_of[to]));
        if (found)
            TRY(status, requests_send(&some, on, here, segment_count(segments, i), shape->type,
                                      leader(on, parent[on->site], root), TAG_OF(on->site)));
    }
    if (on->rank == to)
        status = passing_end(&passing, on, segments, shape, root, parent, status);
    requests_free(&some, status);
    free(memory);
    return status;
}

int reduce_segments(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int root, int64_t segment)
{
    struct segments segments = segments_of(count, shape->size, segment);
    void *memory = NULL, *found = NULL;
    int *parent = malloc(on->sites * sizeof *parent), status = MPI_SUCCESS;
    if (!parent)
        return MPI_ERR_NO_MEM;
    links_tree(on->links, on->sites, on->site_of[root], (int64_t)count * shape->size, parent);
    if (on->rank == root) {
        /* The reduction inside the site is not in place: MPICH 4.0.2 crashes on an in-place reduction whose
         * root is not rank 0. */
        if (from == MPI_IN_PLACE) {
            memory = elements(count, shape, &found);
            TRY(status, memory ? elements_copy(into, found, count, shape) : MPI_ERR_NO_MEM);
            from = found;
        }
        TRY(status, at_root(on, from, into, shape, op, root, &segments, parent));
        free(memory);
    } else {
        status = to_root(on, from, shape, op, root, &segments, parent);
    }
    free(parent);
    return status;
}
