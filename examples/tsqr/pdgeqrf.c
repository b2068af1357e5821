/* pdgeqrf [--block NB] and the options of tsqr: factorises the same matrix as tsqr does, with ScaLAPACK's
 * PDGEQRF, and PDORGQR where Q is wanted, on a grid of P x 1 ranks with one block of rows each. It prints the
 * same table. NB is the number of columns that ScaLAPACK takes together. */
#include "causeway_tsqr.h"
#include "program/crossings.h"
#include "program/table.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "pdgeqrf"

/* ScaLAPACK's and BLACS' interface for Fortran. */
void blacs_get_(const int *context, const int *what, int *value);
void blacs_gridinit_(int *context, const char *order, const int *rows, const int *columns, size_t);
void blacs_gridexit_(const int *context);
void descinit_(int *descriptor, const int *m, const int *n, const int *mb, const int *nb,
               const int *first_row, const int *first_column, const int *context, const int *lld, int *info);
void pdgeqrf_(const int *m, const int *n, double *a, const int *ia, const int *ja, const int *descriptor,
              double *tau, double *work, const int *lwork, int *info);
void pdorgqr_(const int *m, const int *n, const int *k, double *a, const int *ia, const int *ja,
              const int *descriptor, double *tau, double *work, const int *lwork, int *info);

/* The matrix as ScaLAPACK sees it, and its work space. */
struct grid {
    int context, descriptor[9], rows, columns, lwork;
    double *tau, *work;
};

static const char *factor(void *context, struct matrix *m, int wants_q)
{
    static char sentence[80];
    struct grid *grid = context;
    int one = 1, info, n = grid->columns;
    pdgeqrf_(&grid->rows, &n, m->a, &one, &one, grid->descriptor, grid->tau, grid->work, &grid->lwork, &info);
    /* R is in the first block of rows, which rank 0 has. */
    for (int j = 0; m->first == 0 && j < n; j++)
        memcpy(m->r + (size_t)j * n, m->a + j * m->ld, sizeof(double) * ((size_t)j + 1));
    if (wants_q && info == 0)
        pdorgqr_(&grid->rows, &n, &n, m->a, &one, &one, grid->descriptor, grid->tau, grid->work, &grid->lwork,
                 &info);
    snprintf(sentence, sizeof sentence, "ScaLAPACK says INFO = %d", info);
    return info == 0 ? NULL : sentence;
}

static void share_r(struct matrix *m)
{
    MPI_Bcast(m->r, m->columns * m->columns, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static int64_t far_messages(void *context)
{
    (void)context;
    return crossings_count();
}

/* Both routines say in WORK(1) what they need. */
static int work_length(struct grid *grid)
{
    int one = 1, query = -1, info;
    double first[2] = {0, 0}, a = 0, tau = 0;
    pdgeqrf_(&grid->rows, &grid->columns, &a, &one, &one, grid->descriptor, &tau, first, &query, &info);
    pdorgqr_(&grid->rows, &grid->columns, &grid->columns, &a, &one, &one, grid->descriptor, &tau, first + 1,
             &query, &info);
    double most = first[0] > first[1] ? first[0] : first[1];
    if (most > INT_MAX)
        table_fail(NAME, "ScaLAPACK's work space has more elements than an int counts: a smaller --block", 1);
    return (int)most;
}

static struct grid grid_new(const struct options *options)
{
    struct grid grid = {.rows = (int)options->rows, .columns = (int)options->columns};
    int rank, ranks, zero = 0, one = 1, system = -1, info, nb = (int)options->block;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int64_t block = matrix_block(options->rows, ranks), left = options->rows - rank * block;
    if (options->rows > INT_MAX || block < options->columns)
        table_fail(NAME, "ScaLAPACK takes at most 2147483647 rows, and each rank needs as many as columns",
                   1);
    int mb = (int)block, lld = (int)(left < 1 ? 1 : left < block ? left : block);
    if (nb > grid.columns)
        nb = grid.columns;
    blacs_get_(&system, &zero, &grid.context);
    blacs_gridinit_(&grid.context, "C", &ranks, &one, 1);
    descinit_(grid.descriptor, &grid.rows, &grid.columns, &mb, &nb, &zero, &zero, &grid.context, &lld, &info);
    if (info != 0)
        table_fail(NAME, "ScaLAPACK refuses the shape of the matrix", 0);
    grid.lwork = work_length(&grid);
    grid.tau = malloc(sizeof(double) * (size_t)grid.columns);
    grid.work = malloc(sizeof(double) * (size_t)grid.lwork);
    if (!grid.tau || !grid.work)
        table_fail(NAME, "there is no memory for ScaLAPACK's work space", 0);
    return grid;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct options options = table_options(NAME, argv, 1);
    int sites = crossings_open();
    if (sites < 1)
        table_fail(NAME, causeway_tsqr_sentence(sites == 0 ? CAUSEWAY_TSQR_GROUPS : CAUSEWAY_TSQR_MEMORY), 1);
    struct grid grid = grid_new(&options);
    table_print(&(struct table_method){NAME, sites, &grid, factor, share_r, far_messages}, &options);
    blacs_gridexit_(&grid.context);
    free(grid.tau);
    free(grid.work);
    MPI_Finalize();
    return 0;
}
