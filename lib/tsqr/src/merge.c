#include "merge.h"

#include <stdlib.h>
#include <string.h>

size_t tsqr_packed_bytes(const struct tsqr_kind *kind, int rows, int columns)
{
    size_t elements = 0;
    for (int j = 0; j < columns; j++)
        elements += (size_t)tsqr_least(j + 1, rows);
    return elements * kind->bytes;
}

size_t tsqr_pack(const struct tsqr_kind *kind, int rows, int columns, const void *r, int64_t ldr,
                 void *packed)
{
    char *at = packed;
    for (int j = 0; rows > 0 && j < columns; j++) {
        size_t bytes = (size_t)tsqr_least(j + 1, rows) * kind->bytes;
        memcpy(at, tsqr_row(kind, r, j * ldr), bytes);
        at += bytes;
    }
    return (size_t)(at - (char *)packed);
}

void tsqr_unpack(const struct tsqr_kind *kind, int rows, int columns, const void *packed, void *r,
                 int64_t ldr)
{
    const char *at = packed;
    for (int j = 0; rows > 0 && j < columns; j++) {
        int filled = tsqr_least(j + 1, rows);
        memcpy(tsqr_row(kind, r, j * ldr), at, (size_t)filled * kind->bytes);
        memset(tsqr_row(kind, r, j * ldr + filled), 0, (size_t)(rows - filled) * kind->bytes);
        at += (size_t)filled * kind->bytes;
    }
}

int tsqr_merge_factor(causeway_tsqr_q *q, int child, int other, const void *packed, void *r)
{
    const struct tsqr_kind *kind = q->kind;
    struct tsqr_merge *merge = &q->merges[child];
    int n = q->columns, rows = q->factor_rows + other, info;
    merge->own = q->factor_rows;
    merge->other = other;
    merge->k = tsqr_least(n, rows);
    if (rows == 0)
        return 1;
    int panel = tsqr_least(TSQR_PANEL, merge->k);
    merge->v = malloc((size_t)rows * (size_t)n * kind->bytes);
    merge->t = malloc((size_t)panel * (size_t)merge->k * kind->bytes);
    void *work = malloc((size_t)panel * (size_t)n * kind->bytes);
    if (merge->v && merge->t && work) {
        tsqr_copy_upper(kind, merge->own, n, r, n, merge->v, rows);
        tsqr_unpack(kind, other, n, packed, tsqr_row(kind, merge->v, merge->own), rows);
        kind->geqrt(&rows, &n, &panel, merge->v, &rows, merge->t, &panel, work, &info);
        tsqr_copy_upper(kind, merge->k, n, merge->v, rows, r, n);
        q->factor_rows = merge->k;
    }
    int is_done = merge->v && merge->t && work;
    free(work);
    return is_done;
}

/* Applies a merge's Q, or its adjoint, to own + other rows. */
static int apply(const causeway_tsqr_q *q, const struct tsqr_merge *merge, const char *which, int k,
                 void *stack)
{
    int rows = merge->own + merge->other, panel = tsqr_least(TSQR_PANEL, merge->k), info;
    void *work = malloc((size_t)panel * (size_t)k * q->kind->bytes);
    if (!work)
        return 0;
    q->kind->gemqrt("L", which, &rows, &k, &merge->k, &panel, merge->v, &rows, merge->t, &panel, stack, &rows,
                    work, &info, 1, 1);
    free(work);
    return 1;
}

int tsqr_merge_project(const causeway_tsqr_q *q, int child, int k, void *c, const void *values)
{
    const struct tsqr_merge *merge = &q->merges[child];
    int rows = merge->own + merge->other, n = q->columns;
    if (rows == 0)
        return 1;
    void *stack = malloc((size_t)rows * (size_t)k * q->kind->bytes);
    if (!stack)
        return 0;
    tsqr_copy(q->kind, merge->own, k, c, n, stack, rows);
    tsqr_copy(q->kind, merge->other, k, values, merge->other, tsqr_row(q->kind, stack, merge->own), rows);
    int is_done = apply(q, merge, q->kind->adjoint, k, stack);
    tsqr_copy(q->kind, merge->k, k, stack, rows, c, n);
    free(stack);
    return is_done;
}

/* Splits c by a merge's Q: the child's rows go to values. */
static int split(const causeway_tsqr_q *q, const struct tsqr_merge *merge, int k, void *c, void *values)
{
    int rows = merge->own + merge->other, n = q->columns;
    if (rows == 0)
        return 1;
    void *stack = calloc((size_t)rows * (size_t)k, q->kind->bytes);
    if (!stack)
        return 0;
    tsqr_copy(q->kind, merge->k, k, c, n, stack, rows);
    int is_done = apply(q, merge, "N", k, stack);
    tsqr_copy(q->kind, merge->own, k, stack, rows, c, n);
    tsqr_copy(q->kind, merge->other, k, tsqr_row(q->kind, stack, merge->own), rows, values, merge->other);
    free(stack);
    return is_done;
}

void tsqr_spread(const causeway_tsqr_q *q, const int *is_waiting, int k, void *c, struct tsqr_head *head,
                 const void *prefix, size_t prefix_bytes)
{
    for (int i = q->tree->child_count - 1; i >= 0; i--) {
        size_t bytes = 0;
        char *values = NULL;
        if (is_waiting && !is_waiting[i])
            continue;
        if (head->status == CAUSEWAY_TSQR_OK) {
            const struct tsqr_merge *merge = &q->merges[i];
            bytes = prefix_bytes + (c ? (size_t)merge->other * (size_t)k * q->kind->bytes : 0);
            values = malloc(bytes + 1);
            if (values && prefix_bytes > 0)
                memcpy(values, prefix, prefix_bytes);
            if (!values || (c && !split(q, merge, k, c, values + prefix_bytes)))
                tsqr_blame(head, CAUSEWAY_TSQR_MEMORY, q->tree->rank);
            head->rows = merge->other;
            head->k = k;
        }
        tsqr_send(q->tree, q->tree->children[i], head, values, head->status == CAUSEWAY_TSQR_OK ? bytes : 0);
        free(values);
    }
}
