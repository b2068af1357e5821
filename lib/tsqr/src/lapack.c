#include "lapack.h"

#include "../causeway_tsqr.h"

#include <math.h>
#include <string.h>

#define ROUTINES(letter)                                                                                    \
    void letter##geqrt_(const int *, const int *, const int *, void *, const int *, void *, const int *,    \
                        void *, int *);                                                                     \
    void letter##gemqrt_(const char *, const char *, const int *, const int *, const int *, const int *,    \
                         const void *, const int *, const void *, const int *, void *, const int *, void *, \
                         int *, size_t, size_t);                                                            \
    void letter##tpqrt_(const int *, const int *, const int *, const int *, void *, const int *, void *,    \
                        const int *, void *, const int *, void *, int *);                                   \
    void letter##tpmqrt_(const char *, const char *, const int *, const int *, const int *, const int *,    \
                         const int *, const void *, const int *, const void *, const int *, void *,         \
                         const int *, void *, const int *, void *, int *, size_t, size_t);
ROUTINES(s)
ROUTINES(d)
ROUTINES(c)
ROUTINES(z)

static const struct tsqr_kind kinds[] = {
    {4, 1, 0, "T", sgeqrt_, sgemqrt_, stpqrt_, stpmqrt_},
    {8, 1, 1, "T", dgeqrt_, dgemqrt_, dtpqrt_, dtpmqrt_},
    {8, 2, 0, "C", cgeqrt_, cgemqrt_, ctpqrt_, ctpmqrt_},
    {16, 2, 1, "C", zgeqrt_, zgemqrt_, ztpqrt_, ztpmqrt_},
};

const struct tsqr_kind *tsqr_kind_of(int type)
{
    return type < CAUSEWAY_TSQR_FLOAT || type > CAUSEWAY_TSQR_COMPLEX_DOUBLE ? NULL : &kinds[type];
}

void *tsqr_row(const struct tsqr_kind *kind, const void *a, int64_t row)
{
    return (char *)a + (size_t)row * kind->bytes;
}

void tsqr_copy(const struct tsqr_kind *kind, int rows, int columns, const void *from, int64_t from_ld,
               void *to, int64_t to_ld)
{
    for (int j = 0; rows > 0 && j < columns; j++)
        memcpy(tsqr_row(kind, to, j * to_ld), tsqr_row(kind, from, j * from_ld), (size_t)rows * kind->bytes);
}

void tsqr_copy_upper(const struct tsqr_kind *kind, int rows, int columns, const void *from, int64_t from_ld,
                     void *to, int64_t to_ld)
{
    for (int j = 0; rows > 0 && j < columns; j++) {
        int filled = tsqr_least(j + 1, rows);
        memcpy(tsqr_row(kind, to, j * to_ld), tsqr_row(kind, from, j * from_ld),
               (size_t)filled * kind->bytes);
        memset(tsqr_row(kind, to, j * to_ld + filled), 0, (size_t)(rows - filled) * kind->bytes);
    }
}

int tsqr_is_finite(const struct tsqr_kind *kind, int64_t rows, int columns, const void *a, int64_t lda)
{
    for (int j = 0; rows > 0 && j < columns; j++) {
        const void *column = tsqr_row(kind, a, j * lda);
        for (int64_t i = 0; i < rows * kind->parts; i++)
            if (kind->is_double ? !isfinite(((const double *)column)[i])
                                : !isfinite(((const float *)column)[i]))
                return 0;
    }
    return 1;
}

static void load(const struct tsqr_kind *kind, const void *value, double parts[2])
{
    parts[0] = parts[1] = 0;
    for (int i = 0; i < kind->parts; i++)
        parts[i] = kind->is_double ? ((const double *)value)[i] : ((const float *)value)[i];
}

void tsqr_turn(const struct tsqr_kind *kind, void *values, int64_t stride, int n, const double by[2],
               int conjugate)
{
    double imaginary = conjugate ? -by[1] : by[1];
    for (int i = 0; i < n; i++) {
        void *value = tsqr_row(kind, values, i * stride);
        double x[2];
        load(kind, value, x);
        /* A turn by 1 or -1 keeps every bit, also of numbers that are not finite. */
        double turned[2] = {imaginary == 0 ? x[0] * by[0] : x[0] * by[0] - x[1] * imaginary,
                            imaginary == 0 ? x[1] * by[0] : x[0] * imaginary + x[1] * by[0]};
        for (int part = 0; part < kind->parts; part++) {
            if (kind->is_double)
                ((double *)value)[part] = turned[part];
            else
                ((float *)value)[part] = (float)turned[part];
        }
    }
}

void tsqr_direction(const struct tsqr_kind *kind, const void *value, double direction[2])
{
    double x[2];
    load(kind, value, x);
    double size = hypot(x[0], x[1]);
    direction[0] = size > 0 && isfinite(size) ? x[0] / size : 1;
    direction[1] = size > 0 && isfinite(size) ? x[1] / size : 0;
}
