/* The four types, and LAPACK's routines for each: one signature for all, because Fortran takes addresses.
 * These routines (LAPACK 3.4 and newer) take no LWORK, so none can overflow. */
#ifndef TSQR_LAPACK_H
#define TSQR_LAPACK_H

#include <stddef.h>
#include <stdint.h>

struct tsqr_kind {
    size_t bytes;        /* an element's */
    int parts;           /* 2 where it is complex */
    int is_double;       /* so are its parts */
    const char *adjoint; /* the letter for Q^H */
    void (*geqrt)(const int *m, const int *n, const int *nb, void *a, const int *lda, void *t, const int *ldt,
                  void *work, int *info);
    void (*gemqrt)(const char *side, const char *trans, const int *m, const int *n, const int *k,
                   const int *nb, const void *v, const int *ldv, const void *t, const int *ldt, void *c,
                   const int *ldc, void *work, int *info, size_t, size_t);
    void (*tpqrt)(const int *m, const int *n, const int *l, const int *nb, void *a, const int *lda, void *b,
                  const int *ldb, void *t, const int *ldt, void *work, int *info);
    void (*tpmqrt)(const char *side, const char *trans, const int *m, const int *n, const int *k,
                   const int *l, const int *nb, const void *v, const int *ldv, const void *t, const int *ldt,
                   void *a, const int *lda, void *b, const int *ldb, void *work, int *info, size_t, size_t);
};

/* NULL where there is no such type. */
const struct tsqr_kind *tsqr_kind_of(int type);

/* The columns that LAPACK takes together; T has as many rows. More make T larger and help little. */
#define TSQR_PANEL 32

static inline int tsqr_least(int a, int b) { return a < b ? a : b; }

/* Copies a block of rows x columns. */
void tsqr_copy(const struct tsqr_kind *kind, int rows, int columns, const void *from, int64_t from_ld,
               void *to, int64_t to_ld);

/* Copies the upper trapezoid of a factor, and fills the rest of to, rows x columns, with zeros. */
void tsqr_copy_upper(const struct tsqr_kind *kind, int rows, int columns, const void *from, int64_t from_ld,
                     void *to, int64_t to_ld);

/* Where a row of the first column is. */
void *tsqr_row(const struct tsqr_kind *kind, const void *a, int64_t row);

int tsqr_is_finite(const struct tsqr_kind *kind, int64_t rows, int columns, const void *a, int64_t lda);

/* Multiplies n elements, stride apart, by a number of absolute value 1, or by its conjugate. */
void tsqr_turn(const struct tsqr_kind *kind, void *values, int64_t stride, int n, const double by[2],
               int conjugate);

/* The direction of a number: itself by its absolute value, and 1 for 0. */
void tsqr_direction(const struct tsqr_kind *kind, const void *value, double direction[2]);

#endif
