/* R/2 + (the bytes that one site's ranks get)/B + twice the whole vector inside a site: each site reduces
 * everything to its leader, which sends each other site the part for that site's ranks, combines the part for
 * its own ranks, and scatters it. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

#include <string.h>

static int64_t site_elements(const struct hierarchy *on, const int counts[], int site)
{
    int64_t sum = 0;
    for (int i = on->first[site]; i < on->first[site + 1]; i++)
        sum += counts[on->members[i]];
    return sum;
}

/* Copies the blocks of a site's ranks into `into`, one after the other. */
static int collect(struct hierarchy *on, const void *all, const int64_t at[], const int counts[], int site,
                   const struct shape *shape, void *into)
{
    int status = MPI_SUCCESS;
    int64_t done = 0;
    for (int i = on->first[site]; i < on->first[site + 1]; i++) {
        int rank = on->members[i];
        struct bytes bytes;
        TRY(status, bytes_pack(element_at(all, at[rank], shape), counts[rank], shape, &bytes));
        if (status == MPI_SUCCESS) {
            status = unpack(bytes.at, bytes.length, element_at(into, done, shape), counts[rank], shape);
            bytes_free(&bytes);
        }
        done += counts[rank];
    }
    return status;
}

static int exchange(struct hierarchy *on, const void *all, const int64_t at[], const int counts[], void *own,
                    const struct shape *shape, MPI_Op op)
{
    int64_t here = site_elements(on, counts, on->site);
    struct requests some = {0};
    struct parts mine = {0}, theirs = {0};
    int status = parts_make(&mine, on, here, shape, own);
    theirs.number = on->sites;
    theirs.origin = calloc(2 * on->sites, sizeof(void *));
    if (!theirs.origin)
        status = MPI_ERR_NO_MEM;
    else
        theirs.memory = theirs.origin + on->sites;
    for (int s = 0; s < on->sites; s++)
        if (s != on->site && here > 0)
            TRY(status, requests_receive(&some, on, mine.origin[s], here, shape->type, leader(on, s, -1),
                                         TAG_REDUCE_SCATTER));
    for (int s = 0; s < on->sites && status == MPI_SUCCESS; s++) {
        int64_t there = site_elements(on, counts, s);
        if (s == on->site) {
            status = collect(on, all, at, counts, s, shape, own);
        } else if (there > 0) {
            theirs.memory[s] = elements(there, shape, &theirs.origin[s]);
            status =
                theirs.memory[s] ? collect(on, all, at, counts, s, shape, theirs.origin[s]) : MPI_ERR_NO_MEM;
            TRY(status, requests_send(&some, on, theirs.origin[s], there, shape->type, leader(on, s, -1),
                                      TAG_REDUCE_SCATTER));
        }
    }
    TRY(status, requests_wait(&some));
    TRY(status, combine(mine.origin, on->sites, own, (int)here, shape, op));
    requests_free(&some, status);
    parts_free(&theirs);
    parts_free(&mine);
    return status;
}

int reduce_scatter_leaders(struct hierarchy *on, const void *from, void *into, const int counts[],
                           const struct shape *shape, MPI_Op op)
{
    int status = MPI_SUCCESS;
    int64_t *at = malloc((on->size + 1) * sizeof *at);
    int *displs = malloc(2 * on->local_size * sizeof *displs);
    void *memory = NULL, *all = NULL, *own_memory = NULL, *own = NULL;
    if (!at || !displs) {
        free(at);
        free(displs);
        return MPI_ERR_NO_MEM;
    }
    at[0] = 0;
    for (int i = 0; i < on->size; i++)
        at[i + 1] = at[i] + counts[i];
    const void *mine = from == MPI_IN_PLACE ? into : from;
    if (on->local_rank == 0) {
        memory = elements(at[on->size], shape, &all);
        own_memory = elements(site_elements(on, counts, on->site), shape, &own);
        if (!memory || !own_memory)
            status = MPI_ERR_NO_MEM;
    }
    TRY(status, intra_site_reduce(on, mine, all, (int)at[on->size], shape->type, op, 0));
    if (on->local_rank == 0)
        TRY(status, exchange(on, all, at, counts, own, shape, op));
    int *local_counts = displs + on->local_size;
    int sum = 0;
    for (int i = 0; i < on->local_size; i++) {
        displs[i] = sum;
        local_counts[i] = counts[on->members[on->first[on->site] + i]];
        sum += local_counts[i];
    }
    TRY(status, intra_site_scatterv(on, own, local_counts, displs, shape->type, into, counts[on->rank], 0));
    free(at);
    free(displs);
    free(memory);
    free(own_memory);
    return status;
}
