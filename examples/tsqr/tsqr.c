/* tsqr [--rows M] [--columns N] [--runs COUNT] [--seed SEED] [--no-q]: factorises a random matrix of doubles
 * whose rows are spread evenly over all ranks, and says how long it took and how exact it is. The matrix is
 * the same on any number of ranks. */
#include "causeway_tsqr.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of A that are made again at a time, to compare them with Q R. */
#define CHECKED_ROWS 256

struct options {
    int64_t rows, columns, runs, seed;
    int has_no_q;
};

/* This rank's share. */
struct matrix {
    int64_t first, rows, ld;
    int columns;
    double *a, *r;
};

static int rank, ranks;

/* Ends the job; rank 0 alone says why where all ranks know. */
static void fail(const char *sentence, int is_known_to_all)
{
    if (rank == 0 || !is_known_to_all)
        fprintf(stderr, "tsqr: %s\n", sentence);
    if (is_known_to_all) {
        MPI_Finalize();
        exit(1);
    }
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int64_t whole_number(const char *option, const char *text, int64_t least, int64_t most)
{
    char *end, sentence[200];
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : 0;
    if (!text || errno || end == text || *end || value < least || value > most) {
        snprintf(sentence, sizeof sentence, "%s %s: it is a whole number from %lld to %lld", option,
                 text ? text : "", (long long)least, (long long)most);
        fail(sentence, 1);
    }
    return value;
}

static struct options read_options(char **argv)
{
    struct options options = {1000000, 64, 3, 1, 0};
    char sentence[200];
    for (char **at = argv + 1; *at; at++) {
        const char *option = *at, *value = at[1];
        if (!strcmp(option, "--no-q")) {
            options.has_no_q = 1;
            continue;
        }
        if (!strcmp(option, "--rows")) {
            options.rows = whole_number(option, value, 1, INT64_C(1) << 50);
        } else if (!strcmp(option, "--columns")) {
            options.columns = whole_number(option, value, 1, CAUSEWAY_TSQR_MOST_COLUMNS);
        } else if (!strcmp(option, "--runs")) {
            options.runs = whole_number(option, value, 1, 1000000);
        } else if (!strcmp(option, "--seed")) {
            options.seed = whole_number(option, value, 0, INT64_MAX);
        } else {
            snprintf(sentence, sizeof sentence,
                     "%s: there is no such option; there are --rows, --columns, --runs, --seed and --no-q",
                     option);
            fail(sentence, 1);
        }
        at++;
    }
    return options;
}

/* An element, between -1 and 1: splitmix64 of its place. */
static double element(const struct options *options, int64_t row, int64_t column)
{
    uint64_t place = (uint64_t)(row * options->columns + column);
    uint64_t z = (uint64_t)options->seed * 0xd1342543de82ef95u + (place + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

static struct matrix matrix_new(const struct options *options)
{
    struct matrix m = {.columns = (int)options->columns};
    int64_t each = options->rows / ranks, left = options->rows % ranks;
    m.rows = each + (rank < left);
    m.first = rank * each + (rank < left ? rank : left);
    m.ld = m.rows > 0 ? m.rows : 1;
    m.a = malloc(sizeof(double) * (size_t)m.ld * (size_t)m.columns);
    m.r = malloc(sizeof(double) * (size_t)m.columns * (size_t)m.columns);
    if (!m.a || !m.r)
        fail("there is no memory for the matrix", 0);
    return m;
}

static void fill(const struct options *options, struct matrix *m)
{
    for (int64_t j = 0; j < m->columns; j++)
        for (int64_t i = 0; i < m->rows; i++)
            m->a[i + j * m->ld] = element(options, m->first + i, j);
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

/* ||A - QR|| / (||A|| N eps) with norms of columns; A is made again. */
static double residual_of(const struct options *options, const struct matrix *m)
{
    int n = m->columns;
    double *wrong = calloc((size_t)n, sizeof *wrong), *whole = calloc((size_t)n, sizeof *whole);
    if (!wrong || !whole)
        fail("there is no memory for the residual", 0);
    for (int64_t begin = 0; begin < m->rows; begin += CHECKED_ROWS)
        for (int64_t j = 0; j < n; j++) {
            double rest[CHECKED_ROWS];
            int64_t rows = m->rows - begin < CHECKED_ROWS ? m->rows - begin : CHECKED_ROWS;
            for (int64_t i = 0; i < rows; i++) {
                rest[i] = element(options, m->first + begin + i, j);
                whole[j] += fabs(rest[i]);
            }
            for (int64_t l = 0; l <= j; l++)
                for (int64_t i = 0; i < rows; i++)
                    rest[i] -= m->a[begin + i + l * m->ld] * m->r[l + j * n];
            for (int64_t i = 0; i < rows; i++)
                wrong[j] += fabs(rest[i]);
        }
    double error = largest(wrong, n), size = largest(whole, n);
    free(wrong);
    free(whole);
    return error / (size * n * 0x1p-53);
}

/* ||I - Q^T Q|| / (N eps) */
static double orthogonality_of(const struct matrix *m)
{
    int n = m->columns;
    double *gram = calloc((size_t)n * (size_t)n, sizeof *gram), most = 0;
    if (!gram)
        fail("there is no memory for the orthogonality", 0);
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

static int64_t far_messages(const causeway_tsqr_tree *tree)
{
    struct causeway_tsqr_counts counts;
    causeway_tsqr_count(tree, &counts);
    MPI_Allreduce(MPI_IN_PLACE, &counts.messages_far, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return counts.messages_far;
}

static void run(const struct options *options, causeway_tsqr_tree *tree, struct matrix *m, int64_t number)
{
    char exact[80], sentence[200];
    double tall = (double)options->rows, n = m->columns, flops = 2 * tall * n * n - 2 * n * n * n / 3;
    int64_t before = far_messages(tree);
    unsigned flags = options->has_no_q ? 0 : CAUSEWAY_TSQR_R_EVERYWHERE | CAUSEWAY_TSQR_FORM_Q;
    fill(options, m);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    int status = causeway_tsqr_factor(tree, CAUSEWAY_TSQR_DOUBLE, m->rows, m->columns, m->a, m->ld, m->r,
                                      m->columns, flags, NULL);
    double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (status != CAUSEWAY_TSQR_OK) {
        snprintf(sentence, sizeof sentence, "rank %d: %s", causeway_tsqr_culprit(tree),
                 causeway_tsqr_sentence(status));
        fail(sentence, 1);
    }
    if (rank == 0)
        fprintf(stderr, "tsqr: run %lld of %lld: %.3f s%s\n", (long long)number, (long long)options->runs,
                seconds, options->has_no_q ? "" : "; its residual is computed");
    int64_t messages = far_messages(tree) - before;
    snprintf(exact, sizeof exact, "%10s %14s", "-", "-");
    if (!options->has_no_q) {
        double residual = residual_of(options, m), orthogonality = orthogonality_of(m);
        snprintf(exact, sizeof exact, "%10.3f %14.3f", residual, orthogonality);
    }
    if (rank == 0)
        printf("%4lld %10.4f %8.2f %s %22lld\n", (long long)number, seconds,
               flops * (options->has_no_q ? 1 : 2) / seconds * 1e-9, exact, (long long)messages);
}

int main(int argc, char **argv)
{
    causeway_tsqr_tree *tree;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct options options = read_options(argv);
    int status = causeway_tsqr_open(MPI_COMM_WORLD, &tree);
    if (status != CAUSEWAY_TSQR_OK)
        fail(causeway_tsqr_sentence(status), 1);
    struct matrix matrix = matrix_new(&options);
    if (rank == 0) {
        printf("tsqr: %lld x %d, ranks %d, sites %d, seed %lld, R%s\n", (long long)options.rows,
               matrix.columns, ranks, causeway_tsqr_sites(tree), (long long)options.seed,
               options.has_no_q ? " alone" : " and Q");
        printf("%4s %10s %8s %10s %14s %22s\n", "run", "time (s)", "Gflop/s", "residual", "orthogonality",
               "messages between sites");
    }
    for (int64_t i = 1; i <= options.runs; i++)
        run(&options, tree, &matrix, i);
    causeway_tsqr_close(tree);
    free(matrix.a);
    free(matrix.r);
    MPI_Finalize();
    return 0;
}
