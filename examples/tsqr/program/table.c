#include "table.h"

#include "causeway_tsqr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int own_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

void table_fail(const char *program, const char *sentence, int is_known_to_all)
{
    if (own_rank() == 0 || !is_known_to_all)
        fprintf(stderr, "%s: %s\n", program, sentence);
    if (is_known_to_all) {
        MPI_Finalize();
        exit(1);
    }
    /* A launcher that kills all ranks at once may lose what was printed right before. */
    sleep(1);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int64_t whole_number(const char *program, const char *option, const char *text, int64_t least,
                            int64_t most)
{
    char *end, sentence[200];
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : 0;
    if (!text || errno || end == text || *end || value < least || value > most) {
        snprintf(sentence, sizeof sentence, "%s %s: it is a whole number from %lld to %lld", option,
                 text ? text : "", (long long)least, (long long)most);
        table_fail(program, sentence, 1);
    }
    return value;
}

struct options table_options(const char *program, char **argv, int takes_block)
{
    struct options options = {1000000, 64, 3, 1, 16, 0, 0};
    char sentence[200];
    for (char **at = argv + 1; *at; at++) {
        const char *option = *at, *value = at[1];
        if (!strcmp(option, "--no-q")) {
            options.has_no_q = 1;
            continue;
        }
        if (!strcmp(option, "--no-check")) {
            options.has_no_check = 1;
            continue;
        }
        if (!strcmp(option, "--rows")) {
            options.rows = whole_number(program, option, value, 1, INT64_C(1) << 50);
        } else if (!strcmp(option, "--columns")) {
            options.columns = whole_number(program, option, value, 1, CAUSEWAY_TSQR_MOST_COLUMNS);
        } else if (!strcmp(option, "--runs")) {
            options.runs = whole_number(program, option, value, 1, 1000000);
        } else if (!strcmp(option, "--seed")) {
            options.seed = whole_number(program, option, value, 0, INT64_MAX);
        } else if (takes_block && !strcmp(option, "--block")) {
            options.block = whole_number(program, option, value, 1, CAUSEWAY_TSQR_MOST_COLUMNS);
        } else {
            snprintf(sentence, sizeof sentence,
                     "%s: there is no such option; there are --rows, --columns, --runs, --seed, %s--no-q and "
                     "--no-check",
                     option, takes_block ? "--block, " : "");
            table_fail(program, sentence, 1);
        }
        at++;
    }
    return options;
}

/* The slowest rank's time, and the messages of all. What this program sends itself is not counted. */
static double timed(const struct table_method *method, const struct options *options, struct matrix *m,
                    int64_t *messages)
{
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t before = method->far_messages(method->context);
    double begin = MPI_Wtime();
    const char *error = method->factor(method->context, m, !options->has_no_q);
    double seconds = MPI_Wtime() - begin;
    *messages = method->far_messages(method->context) - before;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, messages, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (error)
        table_fail(method->name, error, 1);
    return seconds;
}

static void run(const struct table_method *method, const struct options *options, struct matrix *m,
                int64_t number)
{
    char exact[80];
    double tall = (double)options->rows, n = m->columns, flops = 2 * tall * n * n - 2 * n * n * n / 3;
    int checks = !options->has_no_q && !options->has_no_check;
    int64_t messages;
    matrix_fill(m);
    double seconds = timed(method, options, m, &messages);
    if (own_rank() == 0)
        fprintf(stderr, "%s: run %lld of %lld: %.3f s%s\n", method->name, (long long)number,
                (long long)options->runs, seconds, checks ? "; its residual is computed" : "");
    snprintf(exact, sizeof exact, "%10s %14s", "-", "-");
    if (checks) {
        if (method->share_r)
            method->share_r(m);
        double residual = matrix_residual(m), orthogonality = matrix_orthogonality(m);
        if (residual < 0 || orthogonality < 0)
            table_fail(method->name, "there is no memory for the residual", 1);
        snprintf(exact, sizeof exact, "%10.3f %14.3f", residual, orthogonality);
    }
    if (own_rank() == 0) {
        printf("%4lld %10.4f %8.2f %s %22lld\n", (long long)number, seconds,
               flops * (options->has_no_q ? 1 : 2) / seconds * 1e-9, exact, (long long)messages);
        fflush(stdout);
    }
}

void table_print(const struct table_method *method, const struct options *options)
{
    struct matrix matrix;
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!matrix_new(&matrix, options->rows, (int)options->columns, options->seed))
        table_fail(method->name, "there is no memory for the matrix", 0);
    if (own_rank() == 0) {
        printf("%s: %lld x %d, ranks %d, sites %d, seed %lld, R%s\n", method->name, (long long)options->rows,
               matrix.columns, ranks, method->sites, (long long)options->seed,
               options->has_no_q ? " alone" : " and Q");
        printf("%4s %10s %8s %10s %14s %22s\n", "run", "time (s)", "Gflop/s", "residual", "orthogonality",
               "messages between sites");
    }
    for (int64_t i = 1; i <= options->runs; i++)
        run(method, options, &matrix, i);
    matrix_free(&matrix);
}
