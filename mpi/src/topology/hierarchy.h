/* A communicator seen as sites of ranks, with what its collectives need inside sites and between them. */
#ifndef CAUSEWAY_HIERARCHY_H
#define CAUSEWAY_HIERARCHY_H

#include "binding/mpi_calls.h"
#include "select/links.h"

struct hierarchy {
    /* The null communicator once the program has freed it: what is under way goes on without. */
    MPI_Comm user;
    /* The same ranks, for messages between sites, which the program's own receives must not see. */
    MPI_Comm across;
    /* The ranks of this site, in the communicator's order. */
    MPI_Comm local;
    int size, rank;
    /* At least two, but for choice_by_rank; numbered by their lowest ranks. */
    int sites, site;
    /* Ranks of the site that has most. */
    int largest;
    int local_size, local_rank;
    /* By rank. */
    int *site_of, *local_rank_of;
    /* Ranks grouped by site: those of site s are members[first[s]] to members[first[s + 1] - 1]. */
    int *members, *first;
    /* Each site's ranks follow each other, so that what is combined site by site is combined in the order of
     * ranks. */
    int in_order;
    /* Added to the tags of messages: operations that go on beside the program have their own. */
    int tags;
    /* Such operations so far. */
    unsigned begun;
    /* Which tags persistent requests of this rank have, and those of any rank when all were last asked, a bit
     * for each; the next to be looked at. NULL before the first. */
    unsigned char *tags_used, *tags_used_anywhere;
    int next_tag_number;
    /* The communicator, and plans that outlive their calls. */
    int holders;
    /* Another of this process, of those that communicators carry or that nobody holds. */
    struct hierarchy *next;
    /* The ways between each two of its sites, a row for each; NULL where all are taken to be alike. */
    struct link *links;
};

/* A communicator's, held once; NULL where its collectives are not improved: one site, an intercommunicator,
 * processes of another world. It is collective: without memory the job ends. */
struct hierarchy *hierarchy_make(MPI_Comm comm);
void hierarchy_free(struct hierarchy *on);

static inline int site_size(const struct hierarchy *on, int site)
{
    return on->first[site + 1] - on->first[site];
}

/* A site's leader, which exchanges with other sites: its first rank, but the root of an operation where it
 * has one. */
static inline int leader(const struct hierarchy *on, int site, int root)
{
    return root >= 0 && on->site_of[root] == site ? root : on->members[on->first[site]];
}

#endif
