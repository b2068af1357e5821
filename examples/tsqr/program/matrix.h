/* A random matrix of doubles whose rows are spread over all ranks in equal blocks, and how exact its factors
 * are. It is the same on any number of ranks. */
#ifndef TSQR_MATRIX_H
#define TSQR_MATRIX_H

#include <stdint.h>

/* This rank's share: rows x columns elements of a, the first of which is row `first` of the whole. */
struct matrix {
    int64_t seed, first, rows, ld;
    int columns;
    double *a, *r;
};

/* The rows of each rank but the last ones, which may have fewer, or none: what block ScaLAPACK needs. */
int64_t matrix_block(int64_t rows, int ranks);

/* Gives 0 where there is no memory. */
int matrix_new(struct matrix *m, int64_t rows, int columns, int64_t seed);
void matrix_free(struct matrix *m);

void matrix_fill(struct matrix *m);

/* Both are collective; -1 where there is no memory. Q is in a, R at all ranks in r.
 * ||A - QR|| / (||A|| N eps) with norms of columns; A is made again.
 * ||I - Q^T Q|| / (N eps). */
double matrix_residual(const struct matrix *m);
double matrix_orthogonality(const struct matrix *m);

#endif
