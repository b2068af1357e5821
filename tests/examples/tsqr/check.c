/* check SEED CASES: random factorisations by causeway_tsqr on any number of ranks, against LAPACK's of the
 * whole matrix at rank 0 and against ScaLAPACK's threshold for residual and orthogonality. Then mistakes,
 * each of which must be told at all ranks. Matrices are kept as double complex here, whatever the type. */
#include "../../../lib/tsqr/causeway_tsqr.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* THRESHOLD of ScaLAPACK's test of PDGEQRF (TESTING/QR.dat). */
#define THRESHOLD 5.0

/* ScaLAPACK divides errors by the number of columns. They grow with the square root of the rows as well,
 * which its own test does not show: its matrices are nearly square. So columns count as this root at least,
 * and as 4: one or two columns have some roundings each, too. Of two thousand random matrices one was above
 * the threshold otherwise. */
static double width_of(int rows, int columns) { return fmax(fmax(sqrt(rows), columns), 4); }

typedef double complex number;

void zgeqrf_(const int *, const int *, number *, const int *, number *, number *, const int *, int *);
void zungqr_(const int *, const int *, const int *, number *, const int *, const number *, number *,
             const int *, int *);
void zgemm_(const char *, const char *, const int *, const int *, const int *, const number *, const number *,
            const int *, const number *, const int *, const number *, number *, const int *, size_t, size_t);

static const char *const type_names[] = {"float", "double", "complex float", "complex double"};
static uint64_t state;
static int rank, ranks, checks;
static causeway_tsqr_tree *tree;
static char what[300];

/* One matrix: its whole at all ranks, the rows of each rank, and this rank's rows in its type. */
struct sample {
    int type, columns, rows, *begin, ld;
    number *whole;
    char *own;
};

static void expect(int is_right, const char *claim, double found)
{
    checks++;
    if (!is_right) {
        fprintf(stderr, "check: rank %d: %s: not so: %s (%g)\n", rank, what, claim, found);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void *room(size_t elements)
{
    void *made = calloc(elements + 1, sizeof(number));
    if (!made)
        abort();
    return made;
}

/* splitmix64, the same at all ranks. */
static double uniform(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int below(int n) { return (int)(uniform() * n); }

static size_t bytes_of(int type) { return (size_t[]){4, 8, 8, 16}[type]; }

static int is_complex(int type) { return type >= CAUSEWAY_TSQR_COMPLEX_FLOAT; }

static void store(int type, void *to, size_t at, number value)
{
    float f[2] = {(float)creal(value), (float)cimag(value)};
    double d[2] = {creal(value), cimag(value)};
    int is_double = type == CAUSEWAY_TSQR_DOUBLE || type == CAUSEWAY_TSQR_COMPLEX_DOUBLE;
    memcpy((char *)to + at * bytes_of(type), is_double ? (void *)d : f, bytes_of(type));
}

static number load(int type, const void *from, size_t at)
{
    const double *d = from;
    const float *f = from;
    switch (type) {
    case CAUSEWAY_TSQR_FLOAT:
        return f[at];
    case CAUSEWAY_TSQR_DOUBLE:
        return d[at];
    case CAUSEWAY_TSQR_COMPLEX_FLOAT:
        return CMPLX(f[2 * at], f[2 * at + 1]);
    default:
        return CMPLX(d[2 * at], d[2 * at + 1]);
    }
}

/* ScaLAPACK's PDLAMCH('Epsilon'): half the distance from 1 to the next number. */
static double epsilon(int type)
{
    return type == CAUSEWAY_TSQR_FLOAT || type == CAUSEWAY_TSQR_COMPLEX_FLOAT ? 0x1p-24 : 0x1p-53;
}

/* c = op(a) b + beta c */
static void product(char op, int m, int n, int k, const number *a, int lda, const number *b, int ldb,
                    double beta, number *c, int ldc)
{
    number one = beta < 0 ? -1 : 1, other = beta < 0 ? 1 : beta;
    zgemm_(&op, "N", &m, &n, &k, &one, a, &lda, b, &ldb, &other, c, &ldc, 1, 1);
}

static double norm_1(int m, int n, const number *a, int lda)
{
    double most = 0;
    for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < m; i++)
            sum += cabs(a[i + (size_t)j * lda]);
        most = sum > most || isnan(sum) ? sum : most;
    }
    return most;
}

/* LAPACK's factors of a matrix; q takes its place. */
static void reference(int m, int n, number *a, number *r)
{
    int info, length = 64 * n;
    number *tau = room(n), *work = room(length), *turns = room(n);
    zgeqrf_(&m, &n, a, &m, tau, work, &length, &info);
    for (int i = 0; i < n; i++) {
        number turn = a[i + (size_t)i * m] == 0 ? 1 : conj(a[i + (size_t)i * m]) / cabs(a[i + (size_t)i * m]);
        for (int j = 0; j < n; j++)
            r[i + (size_t)j * n] = j < i ? 0 : a[i + (size_t)j * m] * turn;
        turns[i] = conj(turn);
    }
    zungqr_(&m, &n, &n, a, &m, tau, work, &length, &info);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            a[i + (size_t)j * m] *= turns[j];
    free(turns);
    free(tau);
    free(work);
}

static void fill(int type, int m, int n, number *a)
{
    for (size_t i = 0; i < (size_t)m * n; i++)
        a[i] = CMPLX(2 * uniform() - 1, is_complex(type) ? 2 * uniform() - 1 : 0);
}

/* Singular values from 1 down to 1e-15, between random rotations. */
static void make_ill(int type, int m, int n, number *a)
{
    number *v = room((size_t)n * n), *r = room((size_t)n * n), *u = room((size_t)m * n);
    fill(type, m, n, u);
    fill(type, n, n, v);
    if (rank == 0) {
        reference(m, n, u, r);
        reference(n, n, v, r);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                u[i + (size_t)j * m] *= pow(10, n > 1 ? -15.0 * j / (n - 1) : 0);
        product('N', m, n, n, u, m, v, n, 0, a, m);
    }
    MPI_Bcast(a, 2 * m * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(v);
    free(r);
    free(u);
}

/* Rows of each rank at random: none at some, fewer than columns at others, and first at rank 0, if not 0.
 * Kind 1 is ill-conditioned, kind 2 has columns of zeros and equal columns, and all numbers of kind 3 are 1.
 */
static struct sample sample_new(int type, int columns, int most, int first, int kind)
{
    struct sample s = {.type = type, .columns = columns, .begin = calloc((size_t)ranks + 1, sizeof(int))};
    if (!s.begin)
        abort();
    for (int i = 0; i < ranks; i++) {
        int shape = below(4);
        s.begin[i + 1] = s.begin[i] + (shape == 0 ? 0 : shape == 1 ? below(columns) : below(most));
        s.begin[1] = i == 0 && first > 0 ? first : s.begin[1];
    }
    if (s.begin[ranks] < columns)
        s.begin[ranks] = columns;
    s.rows = s.begin[ranks];
    s.whole = room((size_t)s.rows * columns);
    fill(type, s.rows, columns, s.whole);
    if (kind == 1)
        make_ill(type, s.rows, columns, s.whole);
    for (int j = 0; kind == 2 && j < columns; j++)
        for (int i = 0; i < s.rows; i++)
            s.whole[i + (size_t)j * s.rows] = j % 3 == 0 ? 0 : s.whole[i + (size_t)(j / 3) * s.rows];
    for (size_t i = 0; kind == 3 && i < (size_t)s.rows * columns; i++)
        s.whole[i] = 1;
    int own = s.begin[rank + 1] - s.begin[rank];
    s.ld = own + 1 + below(3);
    s.own = room((size_t)s.ld * columns);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < s.rows; i++) {
            char rounded[sizeof(number)] = "";
            store(type, rounded, 0, s.whole[i + (size_t)j * s.rows]);
            s.whole[i + (size_t)j * s.rows] = load(type, rounded, 0);
            if (i >= s.begin[rank] && i < s.begin[rank + 1])
                memcpy(s.own + bytes_of(type) * (i - s.begin[rank] + (size_t)j * s.ld), rounded,
                       bytes_of(type));
        }
    return s;
}

static void sample_free(struct sample *s)
{
    free(s->begin);
    free(s->whole);
    free(s->own);
}

/* All ranks' rows of a block of k columns, at all ranks. */
static number *whole_of(const struct sample *s, const void *own, int ld, int k)
{
    number *whole = room((size_t)s->rows * k);
    for (int j = 0; j < k; j++)
        for (int i = s->begin[rank]; i < s->begin[rank + 1]; i++)
            whole[i + (size_t)j * s->rows] = load(s->type, own, i - s->begin[rank] + (size_t)j * ld);
    MPI_Allreduce(MPI_IN_PLACE, whole, 2 * s->rows * k, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return whole;
}

/* How far Q and R are from the matrix, and Q from an orthogonal one, in units of the width and epsilon. */
struct errors {
    double residual, orthogonality;
};

static struct errors errors_of(const struct sample *s, const number *q, const number *r, double eps)
{
    int n = s->columns, m = s->rows;
    double norm = norm_1(m, n, s->whole, m), width = width_of(m, n);
    number *product_of = room((size_t)m * n), *gram = room((size_t)n * n);
    struct errors errors;
    memcpy(product_of, s->whole, sizeof(number) * (size_t)m * n);
    product('N', m, n, n, q, m, r, n, -1, product_of, m);
    errors.residual = norm_1(m, n, product_of, m) / (norm > 0 ? norm * width * eps : 1);
    product('C', n, n, m, q, m, q, m, 0, gram, n);
    for (int i = 0; i < n; i++)
        gram[i + (size_t)i * n] -= 1;
    errors.orthogonality = norm_1(n, n, gram, n) / (width * eps);
    free(product_of);
    free(gram);
    return errors;
}

/* What LAPACK itself makes of the matrix, in its own precision. */
static struct errors errors_of_lapack(const struct sample *s)
{
    int n = s->columns, m = s->rows;
    number *q = room((size_t)m * n), *r = room((size_t)n * n);
    memcpy(q, s->whole, sizeof(number) * (size_t)m * n);
    reference(m, n, q, r);
    struct errors errors = errors_of(s, q, r, epsilon(CAUSEWAY_TSQR_DOUBLE));
    free(q);
    free(r);
    return errors;
}

static void check_factors(const struct sample *s, const number *q, const void *r_own, int kind)
{
    int n = s->columns, m = s->rows;
    double eps = epsilon(s->type);
    number *r = room((size_t)n * n), *product_of = room((size_t)m * n), *gram = room((size_t)n * n);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            r[i + (size_t)j * n] = load(s->type, r_own, i + (size_t)j * n);
            expect(j >= i || r[i + (size_t)j * n] == 0, "below R's diagonal are zeros",
                   cabs(r[i + (size_t)j * n]));
        }
    for (int i = 0; i < n; i++)
        expect(creal(r[i + (size_t)i * n]) >= 0 && cimag(r[i + (size_t)i * n]) == 0,
               "R's diagonal is not negative", creal(r[i + (size_t)i * n]));
    struct errors errors = errors_of(s, q, r, eps), most = {THRESHOLD, THRESHOLD};
    /* All equal columns but the first leave rounding errors alone: there LAPACK's own Q is not orthogonal. */
    if (kind == 3)
        most.orthogonality = fmax(THRESHOLD, 20 * fmax(errors_of_lapack(s).orthogonality, 1));
    expect(errors.residual < most.residual, "the residual is below the threshold", errors.residual);
    expect(errors.orthogonality < most.orthogonality, "Q is orthogonal below the threshold",
           errors.orthogonality);
    /* R itself is determined as well as the matrix: at twice as many random rows as columns, well. */
    if (kind == 0 && m >= 2 * n) {
        memcpy(product_of, s->whole, sizeof(number) * (size_t)m * n);
        reference(m, n, product_of, gram);
        for (size_t i = 0; i < (size_t)n * n; i++)
            gram[i] -= r[i];
        double distance = norm_1(n, n, gram, n) / (norm_1(n, n, r, n) * n * eps);
        expect(distance < 10 * THRESHOLD, "R is LAPACK's", distance);
    }
    free(r);
    free(product_of);
    free(gram);
}

/* Applies a kept Q to blocks, and compares with the explicit one. */
static void check_applied(const struct sample *s, causeway_tsqr_q *q, const number *explicit_q)
{
    int n = s->columns, m = s->rows, k = 1 + below(2 * n), own = s->begin[rank + 1] - s->begin[rank],
        ld = own + 2;
    double limit = 10 * THRESHOLD * epsilon(s->type) * n;
    number *x = room((size_t)n * k), *wanted = room((size_t)(m > n ? m : n) * k);
    void *x_own = room((size_t)n * k), *b = room((size_t)ld * k);
    fill(s->type, n, k, x);
    for (size_t i = 0; i < (size_t)n * k; i++) {
        store(s->type, x_own, i, x[i]);
        x[i] = load(s->type, x_own, i);
    }
    int status = causeway_tsqr_multiply(q, k, rank == 0 ? x_own : NULL, n, b, ld);
    expect(status == CAUSEWAY_TSQR_OK, "multiply succeeds", status);
    number *found = whole_of(s, b, ld, k);
    if (rank == 0)
        product('N', m, k, n, explicit_q, m, x, n, 0, wanted, m);
    for (size_t i = 0; i < (size_t)m * k; i++)
        wanted[i] -= found[i];
    expect(rank > 0 || norm_1(m, k, wanted, m) <= limit * norm_1(m, k, found, m), "multiply gives Q X",
           norm_1(m, k, wanted, m));
    /* Q^H Q X is X, and Q^H B must hold for a B that is not in Q's range as well. */
    for (int j = 0; j < k; j++)
        for (int i = 0; i < m; i++) {
            number value = CMPLX(uniform(), is_complex(s->type) ? uniform() : 0);
            if (i >= s->begin[rank] && i < s->begin[rank + 1])
                store(s->type, b, i - s->begin[rank] + (size_t)j * ld, value);
        }
    free(found);
    found = whole_of(s, b, ld, k);
    unsigned flags = below(2) ? CAUSEWAY_TSQR_R_EVERYWHERE : 0;
    status = causeway_tsqr_project(q, k, b, ld, x_own, n, flags);
    expect(status == CAUSEWAY_TSQR_OK, "project succeeds", status);
    if (rank == 0)
        product('C', n, k, m, explicit_q, m, found, m, 0, wanted, n);
    MPI_Bcast(wanted, 2 * n * k, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double norm = norm_1(m, k, found, m);
    for (size_t i = 0; i < (size_t)n * k; i++)
        wanted[i] -= load(s->type, x_own, i);
    expect((rank > 0 && !flags) || norm_1(n, k, wanted, n) <= limit * norm, "project gives Q^H B",
           norm_1(n, k, wanted, n) / norm);
    free(found);
    free(x);
    free(wanted);
    free(x_own);
    free(b);
}

static struct causeway_tsqr_counts count_all(void)
{
    struct causeway_tsqr_counts own, all;
    causeway_tsqr_count(tree, &own);
    MPI_Allreduce(&own, &all, 4, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Messages along the edges of the tree since `before`, each of which took `ways`. */
static void check_messages(struct causeway_tsqr_counts before, int ways)
{
    struct causeway_tsqr_counts now = count_all();
    int sites = causeway_tsqr_sites(tree);
    int64_t far = now.messages_far - before.messages_far, near = now.messages_near - before.messages_near;
    expect(far == (int64_t)ways * (sites - 1), "one message between sites for each edge and way",
           (double)far);
    expect(near == (int64_t)ways * (ranks - sites), "one message within sites for each edge and way",
           (double)near);
}

static void open_groups(void)
{
    char list[200] = "";
    int left = ranks, most = 1 + below(5), groups = 0;
    while (left > 0) {
        int size = groups + 1 == most ? left : 1 + below(left);
        sprintf(list + strlen(list), "%s%d", groups++ ? "," : "", size);
        left -= size;
    }
    setenv("CAUSEWAY_TSQR_GROUPS", list, 1);
    setenv("CAUSEWAY_TSQR_TREE", (const char *[]){"", "links", "binomial"}[below(3)], 1);
    int status = causeway_tsqr_open_for(MPI_COMM_WORLD, 1 + below(200), &tree);
    expect(status == CAUSEWAY_TSQR_OK && causeway_tsqr_sites(tree) == groups, "the groups are the list's",
           status);
}

static void check_random(int number_of)
{
    int type = number_of % 4, kind = below(4), columns = 1 + below(below(2) ? 6 : 32);
    open_groups();
    /* Four blocks of rows and more at rank 0, once for each type. */
    int is_tall = ranks < 3 && number_of < 4;
    struct sample s = sample_new(type, columns, 300 / ranks, is_tall ? 2100 + below(300) : 0, kind);
    sprintf(what, "case %d: %s, %d x %d, kind %d, %d ranks, groups %s", number_of, type_names[type], s.rows,
            columns, kind, ranks, getenv("CAUSEWAY_TSQR_GROUPS"));
    int own = s.begin[rank + 1] - s.begin[rank];
    size_t bytes = bytes_of(type) * (size_t)s.ld * columns;
    void *r = room((size_t)columns * columns), *other = room((size_t)columns * columns), *a = room(bytes);
    void *given = own > 0 ? a : NULL;
    causeway_tsqr_q *q;

    memcpy(a, s.own, bytes);
    struct causeway_tsqr_counts before = count_all();
    int status = causeway_tsqr_factor(tree, type, own, columns, given, s.ld, r, columns,
                                      CAUSEWAY_TSQR_FORM_Q | CAUSEWAY_TSQR_R_EVERYWHERE, NULL);
    expect(status == CAUSEWAY_TSQR_OK && causeway_tsqr_culprit(tree) == -1, "factor with Q succeeds", status);
    check_messages(before, 2);
    number *whole = whole_of(&s, a, s.ld, columns);
    /* Rank 0 checks the factors; all must have its R. */
    memcpy(other, r, bytes_of(type) * columns * columns);
    MPI_Bcast(other, (int)bytes_of(type) * columns * columns, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect(!memcmp(r, other, bytes_of(type) * columns * columns), "all ranks have the same R", 0);
    if (rank == 0)
        check_factors(&s, whole, r, kind);

    memcpy(a, s.own, bytes);
    before = count_all();
    status = causeway_tsqr_factor(tree, type, own, columns, given, s.ld, other, columns,
                                  CAUSEWAY_TSQR_LET_PASS, NULL);
    expect(status == CAUSEWAY_TSQR_OK, "factor without Q succeeds", status);
    check_messages(before, 1);
    expect(rank > 0 || !memcmp(r, other, bytes_of(type) * columns * columns), "R is the same bits", 0);

    memcpy(a, s.own, bytes);
    status =
        causeway_tsqr_factor(tree, type, own, columns, given, s.ld, other, columns, CAUSEWAY_TSQR_KEEP_Q, &q);
    expect(status == CAUSEWAY_TSQR_OK && q, "factor with a kept Q succeeds", status);
    check_applied(&s, q, whole);
    causeway_tsqr_free(q);
    causeway_tsqr_close(tree);
    free(whole);
    free(r);
    free(other);
    free(a);
    sample_free(&s);
}

/* A call that must fail in one way at all ranks, by a mistake of one. */
static void refused(const char *name, int status, int by, int type, int64_t rows, int columns, double value,
                    unsigned flags)
{
    double a[64], r[64];
    snprintf(what, sizeof what, "%s, found by rank %d of %d", name, by, ranks);
    for (int i = 0; i < 64; i++)
        a[i] = i % 7 + (i % 9) * 0.3;
    a[1] = a[2] = value;
    int found = causeway_tsqr_factor(tree, type, rows, columns, a, 8, r, 8, flags, NULL);
    expect(found == status, causeway_tsqr_sentence(found), found);
    /* Where two ranks disagree, the one below in the tree is named. */
    int culprit = causeway_tsqr_culprit(tree), is_either = status == CAUSEWAY_TSQR_DISAGREE && culprit >= 0;
    expect(status == CAUSEWAY_TSQR_OK || culprit == by || is_either, "it names the rank", culprit);
}

static void check_mistakes(void)
{
    int by = below(ranks), is_it = rank == by, type = CAUSEWAY_TSQR_DOUBLE;
    open_groups();
    refused("a NaN", CAUSEWAY_TSQR_NOT_FINITE, by, type, 8, 4, is_it ? NAN : 1, CAUSEWAY_TSQR_FORM_Q);
    refused("an infinity", CAUSEWAY_TSQR_NOT_FINITE, by, type, 8, 4, is_it ? -INFINITY : 1, 0);
    refused("a NaN that may pass", CAUSEWAY_TSQR_OK, by, type, 8, 4, is_it ? NAN : 1,
            CAUSEWAY_TSQR_LET_PASS | CAUSEWAY_TSQR_FORM_Q);
    refused("negative rows", CAUSEWAY_TSQR_ARGUMENT, by, type, is_it ? -1 : 8, 4, 1, 0);
    refused("more rows than lda", CAUSEWAY_TSQR_ARGUMENT, by, type, is_it ? INT64_C(1) << 40 : 8, 4, 1, 0);
    refused("both kinds of Q", CAUSEWAY_TSQR_ARGUMENT, 0, type, 8, 4, 1,
            rank == 0 ? CAUSEWAY_TSQR_FORM_Q | CAUSEWAY_TSQR_KEEP_Q : CAUSEWAY_TSQR_FORM_Q);
    refused("too few rows", CAUSEWAY_TSQR_FEW_ROWS, 0, type, is_it ? 3 : 0, 4, 1, CAUSEWAY_TSQR_R_EVERYWHERE);
    refused("no such type", CAUSEWAY_TSQR_ARGUMENT, by, is_it ? 9 : type, 8, 4, 1, 0);
    if (ranks > 1) {
        by = ranks - 1;
        is_it = rank == by;
        refused("other columns", CAUSEWAY_TSQR_DISAGREE, by, type, 8, is_it ? 3 : 4, 1, 0);
        refused("another type", CAUSEWAY_TSQR_DISAGREE, by, is_it ? CAUSEWAY_TSQR_FLOAT : type, 8, 4, 1, 0);
    }
    refused("all is well again", CAUSEWAY_TSQR_OK, 0, type, 8, 4, 1, CAUSEWAY_TSQR_FORM_Q);
    /* The norm of a column is above the largest number. */
    refused("an overflow", CAUSEWAY_TSQR_OVERFLOW, 0, type, 8, 1, 1.7e308, 0);
    causeway_tsqr_close(tree);
    static const char *const lists[] = {"x", "0", "1,,1", "-1", "1,", "99999999999999999999"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        snprintf(what, sizeof what, "CAUSEWAY_TSQR_GROUPS=%s", lists[i]);
        setenv("CAUSEWAY_TSQR_GROUPS", lists[i], 1);
        int status = causeway_tsqr_open(MPI_COMM_WORLD, &tree);
        expect(status == CAUSEWAY_TSQR_GROUPS && !tree, "it is refused", status);
    }
    unsetenv("CAUSEWAY_TSQR_GROUPS");
    setenv("CAUSEWAY_TSQR_TREE", rank == ranks - 1 ? "fir" : "links", 1);
    int status = causeway_tsqr_open(MPI_COMM_WORLD, &tree);
    expect(status == CAUSEWAY_TSQR_TREE && !tree, "a tree that there is not is refused at all ranks", status);
}

/* Columns more than 2^31 elements apart: only pages that are touched take memory. */
static void check_far_columns(void)
{
    enum { ROWS = 1300, COLUMNS = 3 };
    int64_t lda = (INT64_C(1) << 31) + 5;
    size_t bytes = sizeof(float) * (size_t)lda * COLUMNS;
    float *near = room((size_t)ROWS * COLUMNS), r[2][COLUMNS * COLUMNS];
    float *far =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    snprintf(what, sizeof what, "columns 2^31 + 5 elements apart");
    expect(far != MAP_FAILED, "there are addresses for them", 0);
    for (int j = 0; j < COLUMNS; j++)
        for (int i = 0; i < ROWS; i++)
            far[i + j * lda] = near[i + j * ROWS] = (float)uniform();
    open_groups();
    int type = CAUSEWAY_TSQR_FLOAT, flags = CAUSEWAY_TSQR_R_EVERYWHERE | CAUSEWAY_TSQR_FORM_Q;
    int status = causeway_tsqr_factor(tree, type, ROWS, COLUMNS, near, ROWS, r[0], COLUMNS, flags, NULL);
    expect(status == CAUSEWAY_TSQR_OK, "without gaps it succeeds", status);
    status = causeway_tsqr_factor(tree, type, ROWS, COLUMNS, far, lda, r[1], COLUMNS, flags, NULL);
    expect(status == CAUSEWAY_TSQR_OK, "it succeeds", status);
    expect(!memcmp(r[0], r[1], sizeof r[0]), "R is the same bits", 0);
    for (int j = 0; j < COLUMNS; j++)
        expect(!memcmp(far + j * lda, near + j * ROWS, sizeof(float) * ROWS), "Q is the same bits", j);
    causeway_tsqr_close(tree);
    munmap(far, bytes);
    free(near);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) {
        fprintf(stderr, "usage: check SEED CASES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    state = strtoull(argv[1], NULL, 10);
    for (int i = 0; i < atoi(argv[2]); i++)
        check_random(i);
    check_far_columns();
    check_mistakes();
    if (rank == 0)
        printf("check: %d ranks, seed %s: %s cases and all mistakes, %d checks\n", ranks, argv[1], argv[2],
               checks);
    MPI_Finalize();
    return 0;
}
