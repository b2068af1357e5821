/* One rank's own rows: a chain of blocks of rows. The first is factorised by itself, each other one together
 * with the R so far. Blocks are copied out of A and back, so that LAPACK's 32-bit numbers never see A's
 * length, and so that a block stays in the processor's cache (LAWN 204, section 6: sequential TSQR). */
#ifndef TSQR_LOCAL_H
#define TSQR_LOCAL_H

#include "lapack.h"

struct tsqr_local {
    const struct tsqr_kind *kind;
    int64_t rows, lda, blocks;
    int columns, block_rows, factor_rows; /* R has factor_rows = min(rows, columns) rows */
    void *a;                              /* the program's */
    void *t; /* TSQR_PANEL x columns for each block, or for one where Q is not wanted */
    int has_all_t;
};

/* Both give 0 where there is no memory. factor writes R to r, whose columns are `columns` apart. */
int tsqr_local_factor(struct tsqr_local *local, int keeps_t, void *r);
void tsqr_local_free(struct tsqr_local *local);

/* b = Q c, where c has factor_rows x k elements, columns `local->columns` apart, and is overwritten. b may be
 * a where k is the number of columns: then the reflections are lost. */
int tsqr_local_multiply(const struct tsqr_local *local, int k, void *c, void *b, int64_t ldb);

/* c = Q^H b, with the same shapes. */
int tsqr_local_project(const struct tsqr_local *local, int k, const void *b, int64_t ldb, void *c);

#endif
