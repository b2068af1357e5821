#include "matrix.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

/* Rows of A that are made again at a time, to compare them with Q R. */
#define CHECKED_ROWS 256

/* An element, between -1 and 1: splitmix64 of its place. */
static double element(const struct matrix *m, int64_t row, int64_t column)
{
    uint64_t place = (uint64_t)(row * m->columns + column);
    uint64_t z = (uint64_t)m->seed * 0xd1342543de82ef95u + (place + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

int64_t matrix_block(int64_t rows, int ranks) { return (rows + ranks - 1) / ranks; }

int matrix_new(struct matrix *m, int64_t rows, int columns, int64_t seed)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int64_t block = matrix_block(rows, ranks), first = rank * block, left = rows > first ? rows - first : 0;
    *m = (struct matrix){.seed = seed, .first = first, .columns = columns};
    m->rows = left < block ? left : block;
    m->ld = m->rows > 0 ? m->rows : 1;
    m->a = malloc(sizeof(double) * (size_t)m->ld * (size_t)columns);
    m->r = calloc((size_t)columns * (size_t)columns, sizeof(double));
    return m->a && m->r;
}

void matrix_free(struct matrix *m)
{
    free(m->a);
    free(m->r);
}

void matrix_fill(struct matrix *m)
{
    for (int64_t j = 0; j < m->columns; j++)
        for (int64_t i = 0; i < m->rows; i++)
            m->a[i + j * m->ld] = element(m, m->first + i, j);
}

/* The largest sum of a column, over all ranks. */
static double largest(double *sums, int columns)
{
    double most = 0;
    MPI_Allreduce(MPI_IN_PLACE, sums, columns, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int j = 0; j < columns; j++)
        most = sums[j] > most || isnan(sums[j]) ? sums[j] : most;
    return most;
}

/* Adds up the absolute values of A - Q R and of A in some rows, for each column. */
static void compare_rows(const struct matrix *m, int64_t begin, double *wrong, double *whole)
{
    int64_t n = m->columns, left = m->rows - begin, rows = left < CHECKED_ROWS ? left : CHECKED_ROWS;
    for (int64_t j = 0; j < n; j++) {
        double rest[CHECKED_ROWS];
        for (int64_t i = 0; i < rows; i++) {
            rest[i] = element(m, m->first + begin + i, j);
            whole[j] += fabs(rest[i]);
        }
        for (int64_t l = 0; l <= j; l++)
            for (int64_t i = 0; i < rows; i++)
                rest[i] -= m->a[begin + i + l * m->ld] * m->r[l + j * n];
        for (int64_t i = 0; i < rows; i++)
            wrong[j] += fabs(rest[i]);
    }
}

double matrix_residual(const struct matrix *m)
{
    int n = m->columns;
    double *wrong = calloc((size_t)n, sizeof *wrong), *whole = calloc((size_t)n, sizeof *whole);
    double found = -1;
    int has_memory = wrong && whole;
    MPI_Allreduce(MPI_IN_PLACE, &has_memory, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (has_memory) {
        for (int64_t begin = 0; begin < m->rows; begin += CHECKED_ROWS)
            compare_rows(m, begin, wrong, whole);
        found = largest(wrong, n);
        found /= largest(whole, n) * n * 0x1p-53;
    }
    free(wrong);
    free(whole);
    return found;
}

double matrix_orthogonality(const struct matrix *m)
{
    int n = m->columns;
    double *gram = calloc((size_t)n * (size_t)n, sizeof *gram), most = 0;
    int has_memory = gram != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &has_memory, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!has_memory) {
        free(gram);
        return -1;
    }
    for (int64_t begin = 0; begin < m->rows; begin += CHECKED_ROWS)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < n; l++) {
                int64_t end = begin + CHECKED_ROWS < m->rows ? begin + CHECKED_ROWS : m->rows;
                double sum = 0;
                for (int64_t i = begin; i < end; i++)
                    sum += m->a[i + l * m->ld] * m->a[i + j * m->ld];
                gram[l + j * n] += sum;
            }
    MPI_Allreduce(MPI_IN_PLACE, gram, n * n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int l = 0; l < n; l++)
            sum += fabs(gram[l + j * n] - (l == j));
        most = sum > most || isnan(sum) ? sum : most;
    }
    free(gram);
    return most / (n * 0x1p-53);
}
