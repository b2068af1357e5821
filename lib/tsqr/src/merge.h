/* A rank's Q and what its tree does with it: R of a child below R of its own, factorised together. */
#ifndef TSQR_MERGE_H
#define TSQR_MERGE_H

#include "local.h"
#include "tree.h"

/* Two factors of own and other rows, which make one of k = min(columns, own + other) rows. */
struct tsqr_merge {
    int own, other, k;
    void *v, *t; /* reflections of own + other rows, and their T */
};

struct causeway_tsqr_q {
    causeway_tsqr_tree *tree;
    const struct tsqr_kind *kind;
    int type, columns, factor_rows; /* rows of R at this rank, after all merges so far */
    struct tsqr_local local;
    struct tsqr_merge *merges; /* one for each child, in their order */
    double (*directions)[2];   /* at rank 0: of R's diagonal before it was made positive */
};

/* The upper trapezoid of a factor without what is below; gives the bytes. The second does the reverse, and
 * fills what is below with zeros. */
size_t tsqr_pack(const struct tsqr_kind *kind, int rows, int columns, const void *r, int64_t ldr,
                 void *packed);
void tsqr_unpack(const struct tsqr_kind *kind, int rows, int columns, const void *packed, void *r,
                 int64_t ldr);
size_t tsqr_packed_bytes(const struct tsqr_kind *kind, int rows, int columns);

/* Merges the packed factor of a child, of other rows, into r. Gives 0 where there is no memory. */
int tsqr_merge_factor(causeway_tsqr_q *q, int child, int other, const void *packed, void *r);

/* c = Q^H of a merge times c above values, which are other x k. Gives 0 where there is no memory. */
int tsqr_merge_project(const causeway_tsqr_q *q, int child, int k, void *c, const void *values);

/* Sends each child that waits the answer (is_waiting may be NULL: all do):
 * head, prefix, and its rows of Q c where c is not NULL, of factor_rows x k. Leaves
 * this rank's rows in c. Where the head has a mistake it goes alone, and where one is found on the way, it
 * goes to those that are left. */
void tsqr_spread(const causeway_tsqr_q *q, const int *is_waiting, int k, void *c, struct tsqr_head *head,
                 const void *prefix, size_t prefix_bytes);

#endif
