#include "merge.h"

#include <stdlib.h>
#include <string.h>

#define ALL_FLAGS \
    (CAUSEWAY_TSQR_R_EVERYWHERE | CAUSEWAY_TSQR_FORM_Q | CAUSEWAY_TSQR_KEEP_Q | CAUSEWAY_TSQR_LET_PASS)

/* What one call of factor works on. */
struct job {
    causeway_tsqr_q *q;
    void *r; /* columns x columns, without gaps */
    struct tsqr_head head;
};

static int waits(int64_t flags)
{
    return (flags & (CAUSEWAY_TSQR_R_EVERYWHERE | CAUSEWAY_TSQR_FORM_Q | CAUSEWAY_TSQR_KEEP_Q)) ||
           !(flags & CAUSEWAY_TSQR_LET_PASS);
}

void causeway_tsqr_free(causeway_tsqr_q *q)
{
    if (!q)
        return;
    for (int i = 0; q->merges && i < q->tree->child_count; i++) {
        free(q->merges[i].v);
        free(q->merges[i].t);
    }
    tsqr_local_free(&q->local);
    free(q->merges);
    free(q->directions);
    free(q);
}

static int are_arguments_right(const struct job *job, int64_t rows, const void *a, int64_t lda, const void *r,
                               int64_t ldr, causeway_tsqr_q **q)
{
    const struct tsqr_head *head = &job->head;
    int needs_r = job->q->tree->rank == 0 || (head->flags & CAUSEWAY_TSQR_R_EVERYWHERE);
    int forms = (head->flags & CAUSEWAY_TSQR_FORM_Q) != 0, keeps = (head->flags & CAUSEWAY_TSQR_KEEP_Q) != 0;
    return job->q->kind && rows >= 0 && head->columns >= 1 && head->columns <= CAUSEWAY_TSQR_MOST_COLUMNS &&
           lda >= rows && lda >= 1 && (a || rows == 0) && (!needs_r || (r && ldr >= head->columns)) &&
           !(head->flags & ~(int64_t)ALL_FLAGS) && !(forms && keeps) && (!keeps || q);
}

/* This rank's own rows. */
static void factor_own(struct job *job)
{
    causeway_tsqr_q *q = job->q;
    struct tsqr_local *local = &q->local;
    int n = q->columns, keeps_t = (job->head.flags & (CAUSEWAY_TSQR_FORM_Q | CAUSEWAY_TSQR_KEEP_Q)) != 0;
    if (!(job->head.flags & CAUSEWAY_TSQR_LET_PASS) &&
        !tsqr_is_finite(q->kind, local->rows, n, local->a, local->lda)) {
        tsqr_blame(&job->head, CAUSEWAY_TSQR_NOT_FINITE, q->tree->rank);
        return;
    }
    job->r = calloc((size_t)n * (size_t)n, q->kind->bytes);
    if (!job->r || !tsqr_local_factor(local, keeps_t, job->r))
        tsqr_blame(&job->head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    q->factor_rows = local->factor_rows;
}

/* Takes each child's factor. What is wrong at a child is noted, and what is right is taken no more then. */
static void factor_children(struct job *job)
{
    causeway_tsqr_q *q = job->q;
    struct tsqr_head *own = &job->head;
    for (int i = 0; i < q->tree->child_count; i++) {
        struct tsqr_head head;
        size_t bytes;
        void *packed = tsqr_receive(q->tree, q->tree->children[i], &head, &bytes);
        q->tree->is_waiting[i] = waits(head.flags);
        tsqr_blame(own, (int)head.status, (int)head.culprit);
        if (head.type != own->type || head.columns != own->columns || head.flags != own->flags)
            tsqr_blame(own, CAUSEWAY_TSQR_DISAGREE, q->tree->children[i]);
        if (own->status == CAUSEWAY_TSQR_OK && !tsqr_merge_factor(q, i, (int)head.rows, packed, job->r))
            tsqr_blame(own, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
        free(packed);
    }
}

static void send_up(struct job *job)
{
    causeway_tsqr_q *q = job->q;
    size_t bytes = 0;
    char *packed = NULL;
    if (job->head.status == CAUSEWAY_TSQR_OK && q->factor_rows > 0) {
        bytes = tsqr_packed_bytes(q->kind, q->factor_rows, q->columns);
        packed = malloc(bytes);
        if (packed)
            tsqr_pack(q->kind, q->factor_rows, q->columns, job->r, q->columns, packed);
        else
            tsqr_blame(&job->head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    }
    job->head.rows = q->factor_rows;
    tsqr_send(q->tree, q->tree->parent, &job->head, packed, packed ? bytes : 0);
    free(packed);
}

/* Rank 0 makes R's diagonal real and not negative: R is D^H R, and Q is Q D, where D has the directions. */
static void finish(struct job *job)
{
    causeway_tsqr_q *q = job->q;
    int n = q->columns;
    if (job->head.status != CAUSEWAY_TSQR_OK)
        return;
    q->directions = malloc(sizeof *q->directions * (size_t)n);
    if (!q->directions || q->factor_rows < n) {
        tsqr_blame(&job->head, q->directions ? CAUSEWAY_TSQR_FEW_ROWS : CAUSEWAY_TSQR_MEMORY, 0);
        return;
    }
    for (int j = 0; j < n; j++) {
        void *diagonal = tsqr_row(q->kind, job->r, j * (int64_t)n + j);
        tsqr_direction(q->kind, diagonal, q->directions[j]);
        tsqr_turn(q->kind, diagonal, n, n - j, q->directions[j], 1);
        if (q->kind->parts == 2)
            memset((char *)diagonal + q->kind->bytes / 2, 0, q->kind->bytes / 2);
    }
    if (!(job->head.flags & CAUSEWAY_TSQR_LET_PASS) && !tsqr_is_finite(q->kind, n, n, job->r, n))
        tsqr_blame(&job->head, CAUSEWAY_TSQR_OVERFLOW, 0);
}

/* Takes the parent's answer: R where it is asked for, and this subtree's rows of the coefficients of Q. */
static void receive_answer(struct job *job, void *c)
{
    causeway_tsqr_q *q = job->q;
    int n = q->columns;
    size_t bytes, before = 0;
    struct tsqr_head head;
    char *values = tsqr_receive(q->tree, q->tree->parent, &head, &bytes);
    tsqr_blame(&job->head, (int)head.status, (int)head.culprit);
    if (job->head.status == CAUSEWAY_TSQR_OK && values) {
        if (job->head.flags & CAUSEWAY_TSQR_R_EVERYWHERE) {
            before = tsqr_packed_bytes(q->kind, n, n);
            tsqr_unpack(q->kind, n, n, values, job->r, n);
        }
        if (c)
            tsqr_copy(q->kind, q->factor_rows, n, values + before, q->factor_rows, c, n);
    }
    free(values);
}

/* The way back: each rank takes its answer, and gives its children theirs. */
static void answer(struct job *job)
{
    causeway_tsqr_q *q = job->q;
    int n = q->columns, is_right = job->head.status == CAUSEWAY_TSQR_OK;
    int forms = is_right && (job->head.flags & CAUSEWAY_TSQR_FORM_Q);
    int tells = is_right && (job->head.flags & CAUSEWAY_TSQR_R_EVERYWHERE);
    size_t bytes = tells ? tsqr_packed_bytes(q->kind, n, n) : 0;
    void *c = forms ? calloc((size_t)n * (size_t)n, q->kind->bytes) : NULL,
         *packed = tells ? malloc(bytes) : NULL;
    if ((forms && !c) || (tells && !packed))
        tsqr_blame(&job->head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    if (q->tree->parent >= 0)
        receive_answer(job, c);
    /* The coefficients of Q itself are the unit matrix, turned as R was. */
    for (int j = 0; q->tree->parent < 0 && c && job->head.status == CAUSEWAY_TSQR_OK && j < n; j++) {
        static const double one = 1;
        static const float one_float = 1;
        void *diagonal = tsqr_row(q->kind, c, j * (int64_t)n + j);
        memcpy(diagonal, q->kind->is_double ? (const void *)&one : &one_float,
               q->kind->bytes / (size_t)q->kind->parts);
        tsqr_turn(q->kind, diagonal, 1, 1, q->directions[j], 0);
    }
    if (packed && job->head.status == CAUSEWAY_TSQR_OK)
        tsqr_pack(q->kind, n, n, job->r, n, packed);
    tsqr_spread(q, q->tree->is_waiting, n, c, &job->head, packed, bytes);
    if (c && job->head.status == CAUSEWAY_TSQR_OK &&
        !tsqr_local_multiply(&q->local, n, c, q->local.a, q->local.lda))
        tsqr_blame(&job->head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    free(c);
    free(packed);
}

int causeway_tsqr_factor(causeway_tsqr_tree *tree, enum causeway_tsqr_type type, int64_t rows, int columns,
                         void *a, int64_t lda, void *r, int64_t ldr, unsigned flags, causeway_tsqr_q **kept)
{
    struct job job = {NULL, NULL, {CAUSEWAY_TSQR_OK, -1, (int64_t)type, columns, flags, 0, 0}};
    struct causeway_tsqr_q none = {.tree = tree};
    job.q = calloc(1, sizeof *job.q);
    if (kept)
        *kept = NULL;
    if (job.q)
        job.q->merges = calloc((size_t)tree->child_count + 1, sizeof *job.q->merges);
    if (!job.q || !job.q->merges) {
        causeway_tsqr_q *without = job.q;
        free(without);
        job.q = &none;
        tsqr_blame(&job.head, CAUSEWAY_TSQR_MEMORY, tree->rank);
    }
    job.q->tree = tree;
    job.q->kind = tsqr_kind_of((int)type);
    job.q->type = (int)type;
    job.q->columns = columns;
    job.q->local =
        (struct tsqr_local){.kind = job.q->kind, .rows = rows, .lda = lda, .columns = columns, .a = a};
    if (!are_arguments_right(&job, rows, a, lda, r, ldr, kept))
        tsqr_blame(&job.head, CAUSEWAY_TSQR_ARGUMENT, tree->rank);
    if (job.head.status == CAUSEWAY_TSQR_OK)
        factor_own(&job);
    factor_children(&job);
    if (tree->parent >= 0)
        send_up(&job);
    else
        finish(&job);
    if (waits(flags))
        answer(&job);
    else
        /* Children that wait all the same disagree, and are told so. */
        tsqr_spread(job.q, tree->is_waiting, columns, NULL, &job.head, NULL, 0);
    if (job.head.status == CAUSEWAY_TSQR_OK && (tree->rank == 0 || (flags & CAUSEWAY_TSQR_R_EVERYWHERE)))
        tsqr_copy_upper(job.q->kind, columns, columns, job.r, columns, r, ldr);
    free(job.r);
    tree->culprit = job.head.status == CAUSEWAY_TSQR_OK ? -1 : (int)job.head.culprit;
    if (job.head.status == CAUSEWAY_TSQR_OK && (flags & CAUSEWAY_TSQR_KEEP_Q))
        *kept = job.q;
    else if (job.q != &none)
        causeway_tsqr_free(job.q);
    return (int)job.head.status;
}
