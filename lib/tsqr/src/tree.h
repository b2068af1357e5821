/* The tree of ranks, and the messages along its edges. Within a site it is a binomial tree, whose root is the
 * site's lowest rank. A tree that is made for the links between sites joins these roots (site_tree.h). So
 * sites - 1 edges join two sites. */
#ifndef TSQR_TREE_H
#define TSQR_TREE_H

#include "../causeway_tsqr.h"

#include <stddef.h>

struct causeway_tsqr_tree {
    MPI_Comm comm;
    int rank, ranks, sites, culprit;
    int parent;                 /* -1 at rank 0 */
    int *children, child_count; /* in the order in which they are merged: those of the own site first */
    int *is_waiting;            /* of each child: it waits for an answer of the factorisation that goes on */
    int *site;                  /* of each rank */
    struct causeway_tsqr_counts counts;
};

/* What each message begins with. Processors of one byte order are taken for granted. */
struct tsqr_head {
    int64_t status, culprit;
    int64_t type, columns, flags; /* must be alike at all ranks */
    int64_t rows, k;              /* shape of the values that follow */
};

/* Notes the first mistake that is found. */
void tsqr_blame(struct tsqr_head *head, int status, int culprit);

/* Sends head and bytes of values as one message. Without memory for it the head goes alone and says so. */
void tsqr_send(causeway_tsqr_tree *tree, int to, struct tsqr_head *head, const void *values, size_t bytes);

/* Receives a message; its values are the caller's to free, and NULL where there are none. Ends the job where
 * there is no memory for it: the sender's message could not be taken otherwise. */
void *tsqr_receive(causeway_tsqr_tree *tree, int from, struct tsqr_head *head, size_t *bytes);

#endif
