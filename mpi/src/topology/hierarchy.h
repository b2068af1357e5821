/* A communicator seen as sites of ranks, with what its collectives need inside sites and between them. */
#ifndef CAUSEWAY_HIERARCHY_H
#define CAUSEWAY_HIERARCHY_H

#include "binding/mpi_calls.h"
#include "select/links.h"

#include <stddef.h>

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
    /* Each site's ranks follow each other, so that what is combined site by site is combined in the order of ranks. */
    int in_order;
    /* Added to the tags of messages: operations that go on beside the program have their own. */
    int tags;
    /* Such operations so far. */
    unsigned begun;
    /* Which tags persistent requests of this rank have, and those of any rank when all were last asked, a bit for each; the next to be
     * looked at. NULL before the first. */
    unsigned char *tags_used, *tags_used_anywhere;
    int next_tag_number;
    /* The communicator, and plans that outlive their calls. */
    int holders;
    /* Another of this process, of those that communicators carry or that nobody holds. */
    struct hierarchy *next;
    /* The ways between each two of its sites, a row for each; NULL where all are taken to be alike. */
    struct link *links;
};

/* Whether any are improved at all. */
int hierarchy_wanted(void);

/* The hierarchy of a communicator whose collectives are improved; NULL where they are not: one site, an intercommunicator,
 * processes of another world. The first call on a communicator is collective over it. Between a call that did not give
 * NULL and hierarchy_leave, collectives that the MPI below calls itself are left to it. */
struct hierarchy *hierarchy_enter(MPI_Comm comm);

/* Whether a communicator has its hierarchy, so that entering it waits for nobody. */
int hierarchy_known(MPI_Comm comm);

/* Tags for the next operation that goes on beside the program, or for all that come of a persistent request, which may wait for other
 * ranks; -1, at all ranks, when there are none left. */
int hierarchy_tags(struct hierarchy *on, int is_persistent);
/* Those of a persistent request, for another. */
void hierarchy_return_tags(struct hierarchy *on, int tags);

/* Keeps them until they are released as often. */
void hierarchy_hold(struct hierarchy *on);
void hierarchy_release(struct hierarchy *on);

/* Says whether this thread is inside an operation of ours; what it was before. */
int hierarchy_inside(int is_inside);

/* Ends an improved operation; gives errors to the communicator's error handler. */
int hierarchy_leave(struct hierarchy *on, int status);
int hierarchy_raise(const struct hierarchy *on, int status);
/* The communicator whose error handler that is. */
MPI_Comm hierarchy_handler(const struct hierarchy *on);

/* Before a communicator is freed. Operations under way there go on. */
void hierarchy_forget(MPI_Comm comm);
/* Waits for them, before a communicator is disconnected. */
void hierarchy_finish(MPI_Comm comm);

/* In MPI_Finalize. */
void hierarchy_end(void);

static inline int site_size(const struct hierarchy *on, int site) { return on->first[site + 1] - on->first[site]; }

/* A site's leader, which exchanges with other sites: its first rank, but the root of an operation where it has one. */
static inline int leader(const struct hierarchy *on, int site, int root)
{
    return root >= 0 && on->site_of[root] == site ? root : on->members[on->first[site]];
}

#endif
