/* A communicator seen as sites of ranks, with what its collectives need inside sites and between them. */
#ifndef CAUSEWAY_HIERARCHY_H
#define CAUSEWAY_HIERARCHY_H

#include "collectives/select/links.h"
#include "common/binding/mpi_calls.h"

struct hierarchy {
    /* The program's communicator; the null one once the program has freed it. What is under way goes on
     * without it. */
    MPI_Comm user;
    /* A communicator of the same ranks for our messages, which the program's own receives must not see. */
    MPI_Comm across;
    /* A communicator of this site's ranks, in the program's order. It may be that of MPI_COMM_WORLD. */
    MPI_Comm local;
    int size, rank;
    /* There are at least two sites, except with choice_by_rank. They are numbered by their lowest ranks. */
    int sites, site;
    /* How many ranks the largest site has. */
    int largest;
    int local_size, local_rank;
    /* The site of each rank, and the place of each rank in its site. */
    int *site_of, *local_rank_of;
    /* Ranks grouped by site: those of site s are members[first[s]] to members[first[s + 1] - 1]. */
    int *members, *first;
    /* True where each site's ranks follow each other. What is combined site by site is then combined in the
     * order of ranks. */
    int in_order;
    /* This is added to the tags of messages. Operations that go on beside the program have their own. */
    int tags;
    /* How many such operations have begun. */
    unsigned begun;
    /* A bit for each tag: those that persistent requests of this rank have, and those that any rank had when
     * all were last asked. NULL before the first. next_tag_number is the next to be looked at. */
    unsigned char *tags_used, *tags_used_anywhere;
    int next_tag_number;
    /* How many hold this: the communicator, and plans that outlive their calls. */
    int holders;
    /* The next in a list of this process's: of those that communicators carry, or of those that nobody
     * holds. */
    struct hierarchy *next;
    /* The ways between each two of its sites, a row for each; NULL where all are taken to be alike. */
    struct link *links;
};

/* Makes a communicator's hierarchy, held once. NULL where its collectives are not improved: for one site, an
 * intercommunicator, or processes of another world. It is collective: without memory the job ends. */
struct hierarchy *hierarchy_make(MPI_Comm comm);
void hierarchy_free(struct hierarchy *on);

static inline int site_size(const struct hierarchy *on, int site)
{
    return on->first[site + 1] - on->first[site];
}

/* A site's leader, which exchanges with other sites. It is the site's first rank, or the operation's root
 * where that is at this site. */
static inline int leader(const struct hierarchy *on, int site, int root)
{
    return root >= 0 && on->site_of[root] == site ? root : on->members[on->first[site]];
}

#endif
