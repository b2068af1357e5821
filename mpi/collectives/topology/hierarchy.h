/* A communicator divided into sites, with what its collectives need inside sites and between them. */
#ifndef CAUSEWAY_HIERARCHY_H
#define CAUSEWAY_HIERARCHY_H

#include "collectives/select/links.h"
#include "common/binding/mpi_calls.h"

struct hierarchy {
    /* The program's communicator; MPI_COMM_NULL once the program has freed it. Operations in progress
     * continue without it. */
    MPI_Comm user;
    /* A communicator of the same ranks for our messages, which the program's own receives must not see. */
    MPI_Comm across;
    /* A communicator of this site's ranks, in the program's order. It may be that of MPI_COMM_WORLD. */
    MPI_Comm local;
    int size, rank;
    /* There are at least two sites, except with choice_by_rank. They are numbered by their lowest ranks. */
    int sites, site;
    /* The number of ranks of the largest site. */
    int largest;
    int local_size, local_rank;
    /* The site of each rank, and its local rank there. */
    int *site_of, *local_rank_of;
    /* Ranks grouped by site: those of site s are members[first[s]] to members[first[s + 1] - 1]. */
    int *members, *first;
    /* True if each site's ranks are consecutive. Combining site by site then keeps the order of ranks. */
    int in_order;
    /* Added to the tags of messages. Each background operation has a value of its own. */
    int tags;
    /* The number of background operations begun. */
    unsigned begun;
    /* Bitmaps of the tag numbers that this rank's persistent requests use, and of those that any rank's used
     * when all ranks were last asked; NULL before the first such request. next_tag_number is the next one to
     * try. */
    unsigned char *tags_used, *tags_used_anywhere;
    int next_tag_number;
    /* The reference count: the communicator's reference, and those of plans that outlive their calls. */
    int holders;
    /* The next in one of this process's lists: that of hierarchies which communicators carry, or that of
     * hierarchies without references. */
    struct hierarchy *next;
    /* The matrix of links between its sites, a row for each site; NULL if all links count as equal. */
    struct link *links;
};

/* Makes a communicator's hierarchy, with one reference. Returns NULL if its collectives are not improved: for
 * one site, an intercommunicator, or processes of another world. Collective, so the job ends if memory is
 * exhausted. */
struct hierarchy *hierarchy_make(MPI_Comm comm);
void hierarchy_free(struct hierarchy *on);

static inline int site_size(const struct hierarchy *on, int site)
{
    return on->first[site + 1] - on->first[site];
}

/* A site's leader, which exchanges with other sites: the operation's root if that is at this site, otherwise
 * the site's first rank. */
static inline int leader(const struct hierarchy *on, int site, int root)
{
    return root >= 0 && on->site_of[root] == site ? root : on->members[on->first[site]];
}

#endif
