#include "merge.h"

#include <stdlib.h>

static int is_width(int k) { return k >= 1 && k <= CAUSEWAY_TSQR_MOST_COLUMNS; }

static int is_block_right(const causeway_tsqr_q *q, int k, const void *b, int64_t ldb)
{
    return is_width(k) && ldb >= q->local.rows && ldb >= 1 && (b || q->local.rows == 0);
}

/* Room for coefficients, columns x k, where all is right. */
static void *coefficients(const causeway_tsqr_q *q, int k, struct tsqr_head *head)
{
    void *c =
        head->status == CAUSEWAY_TSQR_OK ? calloc((size_t)q->columns * (size_t)k, q->kind->bytes) : NULL;
    if (!c)
        tsqr_blame(head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    return c;
}

static struct tsqr_head begin(const causeway_tsqr_q *q, int k, int is_right)
{
    struct tsqr_head head = {CAUSEWAY_TSQR_OK, -1, q->type, q->columns, 0, 0, k};
    if (!is_right)
        tsqr_blame(&head, CAUSEWAY_TSQR_ARGUMENT, q->tree->rank);
    return head;
}

static int end(const causeway_tsqr_q *q, const struct tsqr_head *head)
{
    q->tree->culprit = head->status == CAUSEWAY_TSQR_OK ? -1 : (int)head->culprit;
    return (int)head->status;
}

/* Turns each row of c by the direction of its place on R's diagonal. */
static void turn_rows(const causeway_tsqr_q *q, int k, void *c, int conjugate)
{
    for (int i = 0; i < q->columns; i++)
        tsqr_turn(q->kind, tsqr_row(q->kind, c, i), q->columns, k, q->directions[i], conjugate);
}

int causeway_tsqr_multiply(causeway_tsqr_q *q, int k, const void *x, int64_t ldx, void *b, int64_t ldb)
{
    int is_root = q->tree->parent < 0;
    struct tsqr_head head =
        begin(q, k, is_block_right(q, k, b, ldb) && (!is_root || (x && ldx >= q->columns)));
    void *c = coefficients(q, k, &head);
    if (is_root && c) {
        tsqr_copy(q->kind, q->columns, k, x, ldx, c, q->columns);
        turn_rows(q, k, c, 0);
    }
    if (!is_root) {
        struct tsqr_head told;
        size_t bytes;
        void *values = tsqr_receive(q->tree, q->tree->parent, &told, &bytes);
        tsqr_blame(&head, (int)told.status, (int)told.culprit);
        if (told.status == CAUSEWAY_TSQR_OK && told.k != k)
            tsqr_blame(&head, CAUSEWAY_TSQR_DISAGREE, q->tree->rank);
        if (head.status == CAUSEWAY_TSQR_OK)
            tsqr_copy(q->kind, q->factor_rows, k, values, q->factor_rows, c, q->columns);
        free(values);
    }
    tsqr_spread(q, NULL, k, c, &head, NULL, 0);
    if (head.status == CAUSEWAY_TSQR_OK && !tsqr_local_multiply(&q->local, k, c, b, ldb))
        tsqr_blame(&head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    free(c);
    return end(q, &head);
}

/* Takes each child's coefficients. */
static void gather(const causeway_tsqr_q *q, int k, void *c, struct tsqr_head *head)
{
    for (int i = 0; i < q->tree->child_count; i++) {
        struct tsqr_head told;
        size_t bytes;
        void *values = tsqr_receive(q->tree, q->tree->children[i], &told, &bytes);
        tsqr_blame(head, (int)told.status, (int)told.culprit);
        if (told.k != head->k || told.flags != head->flags)
            tsqr_blame(head, CAUSEWAY_TSQR_DISAGREE, q->tree->children[i]);
        if (head->status == CAUSEWAY_TSQR_OK && !tsqr_merge_project(q, i, k, c, values))
            tsqr_blame(head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
        free(values);
    }
}

/* Sends this rank's coefficients, without gaps between columns. */
static void send_coefficients(const causeway_tsqr_q *q, int k, const void *c, struct tsqr_head *head)
{
    int rows = q->factor_rows;
    size_t bytes = c ? (size_t)rows * (size_t)k * q->kind->bytes : 0;
    void *values = c ? malloc(bytes + 1) : NULL;
    if (values)
        tsqr_copy(q->kind, rows, k, c, q->columns, values, rows);
    else
        tsqr_blame(head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    head->rows = rows;
    tsqr_send(q->tree, q->tree->parent, head, values, head->status == CAUSEWAY_TSQR_OK ? bytes : 0);
    free(values);
}

/* The same result for all ranks, from rank 0 down the tree. */
static void broadcast(const causeway_tsqr_q *q, int k, void *c, struct tsqr_head *head)
{
    int n = q->columns;
    if (q->tree->parent >= 0) {
        struct tsqr_head told;
        size_t bytes;
        void *values = tsqr_receive(q->tree, q->tree->parent, &told, &bytes);
        tsqr_blame(head, (int)told.status, (int)told.culprit);
        if (head->status == CAUSEWAY_TSQR_OK)
            tsqr_copy(q->kind, n, k, values, n, c, n);
        free(values);
    }
    size_t bytes = head->status == CAUSEWAY_TSQR_OK ? (size_t)n * (size_t)k * q->kind->bytes : 0;
    for (int i = q->tree->child_count - 1; i >= 0; i--)
        tsqr_send(q->tree, q->tree->children[i], head, c, bytes);
}

int causeway_tsqr_project(causeway_tsqr_q *q, int k, const void *b, int64_t ldb, void *x, int64_t ldx,
                          unsigned flags)
{
    int needs_x = q->tree->parent < 0 || (flags & CAUSEWAY_TSQR_R_EVERYWHERE);
    int is_right = is_block_right(q, k, b, ldb) && !(flags & ~(unsigned)CAUSEWAY_TSQR_R_EVERYWHERE);
    struct tsqr_head head = begin(q, k, is_right && (!needs_x || (x && ldx >= q->columns)));
    head.flags = flags;
    void *c = coefficients(q, k, &head);
    if (c && !tsqr_local_project(&q->local, k, b, ldb, c))
        tsqr_blame(&head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
    gather(q, k, c, &head);
    if (q->tree->parent >= 0)
        send_coefficients(q, k, c, &head);
    else if (head.status == CAUSEWAY_TSQR_OK)
        turn_rows(q, k, c, 1);
    if (flags & CAUSEWAY_TSQR_R_EVERYWHERE)
        broadcast(q, k, c, &head);
    if (head.status == CAUSEWAY_TSQR_OK && needs_x)
        tsqr_copy(q->kind, q->columns, k, c, q->columns, x, ldx);
    free(c);
    return end(q, &head);
}
