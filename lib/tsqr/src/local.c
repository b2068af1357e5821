#include "local.h"

#include <stdlib.h>
#include <string.h>

/* Elements of a block: 256 kB of doubles, which fit into a second-level cache. */
#define BLOCK_ELEMENTS 32768

/* Rows of a block of few columns: the rounding errors of a sum grow with the square root of its length. */
#define MOST_BLOCK_ROWS 512

/* Memory for a block of reflections, one of values, and LAPACK's own; all or nothing. */
struct room {
    void *v, *values, *work;
};

static void leave(struct room *room)
{
    free(room->v);
    free(room->values);
    free(room->work);
}

static int enter(const struct tsqr_local *local, int k, struct room *room)
{
    size_t rows = (size_t)local->block_rows, bytes = local->kind->bytes;
    int widest = k > local->columns ? k : local->columns;
    room->v = malloc(rows * (size_t)local->columns * bytes);
    room->values = malloc(rows * (size_t)k * bytes);
    room->work = malloc((size_t)TSQR_PANEL * (size_t)widest * bytes);
    if (room->v && room->values && room->work)
        return 1;
    leave(room);
    return 0;
}

static int rows_of(const struct tsqr_local *local, int64_t block)
{
    int64_t left = local->rows - block * local->block_rows;
    return left < local->block_rows ? (int)left : local->block_rows;
}

static void *t_of(const struct tsqr_local *local, int64_t block)
{
    int64_t index = local->has_all_t ? block : 0;
    return tsqr_row(local->kind, local->t, index * TSQR_PANEL * local->columns);
}

static void *in_block(const struct tsqr_local *local, const void *matrix, int64_t block)
{
    return tsqr_row(local->kind, matrix, block * local->block_rows);
}

int tsqr_local_factor(struct tsqr_local *local, int keeps_t, void *r)
{
    const struct tsqr_kind *kind = local->kind;
    int n = local->columns, none = 0, info;
    struct room room;
    local->block_rows = tsqr_least(BLOCK_ELEMENTS / n, MOST_BLOCK_ROWS);
    if (local->block_rows < 2 * n)
        local->block_rows = 2 * n;
    if (local->rows < local->block_rows)
        local->block_rows = local->rows > 0 ? (int)local->rows : 1;
    local->blocks = (local->rows + local->block_rows - 1) / local->block_rows;
    local->factor_rows = local->rows < n ? (int)local->rows : n;
    local->has_all_t = keeps_t;
    int64_t kept = keeps_t && local->blocks > 1 ? local->blocks : 1;
    local->t = malloc((size_t)kept * TSQR_PANEL * (size_t)n * kind->bytes);
    if (!local->t || !enter(local, 1, &room))
        return 0;
    for (int64_t block = 0; block < local->blocks; block++) {
        int rows = rows_of(local, block), panel = tsqr_least(TSQR_PANEL, local->factor_rows);
        void *a = in_block(local, local->a, block);
        tsqr_copy(kind, rows, n, a, local->lda, room.v, rows);
        if (block == 0) {
            kind->geqrt(&rows, &n, &panel, room.v, &rows, t_of(local, block), &panel, room.work, &info);
            tsqr_copy_upper(kind, local->factor_rows, n, room.v, rows, r, n);
        } else {
            kind->tpqrt(&rows, &n, &none, &panel, r, &n, room.v, &rows, t_of(local, block), &panel, room.work,
                        &info);
        }
        if (keeps_t)
            tsqr_copy(kind, rows, n, room.v, rows, a, local->lda);
    }
    leave(&room);
    return 1;
}

void tsqr_local_free(struct tsqr_local *local)
{
    free(local->t);
    local->t = NULL;
}

int tsqr_local_multiply(const struct tsqr_local *local, int k, void *c, void *b, int64_t ldb)
{
    const struct tsqr_kind *kind = local->kind;
    int n = local->columns, s = local->factor_rows, panel = tsqr_least(TSQR_PANEL, s), none = 0, info;
    struct room room;
    if (!enter(local, k, &room))
        return 0;
    for (int64_t block = local->blocks - 1; block >= 0; block--) {
        int rows = rows_of(local, block);
        tsqr_copy(kind, rows, n, in_block(local, local->a, block), local->lda, room.v, rows);
        memset(room.values, 0, (size_t)rows * (size_t)k * kind->bytes);
        if (block == 0) {
            tsqr_copy(kind, s, k, c, n, room.values, rows);
            kind->gemqrt("L", "N", &rows, &k, &s, &panel, room.v, &rows, t_of(local, block), &panel,
                         room.values, &rows, room.work, &info, 1, 1);
        } else {
            kind->tpmqrt("L", "N", &rows, &k, &n, &none, &panel, room.v, &rows, t_of(local, block), &panel, c,
                         &n, room.values, &rows, room.work, &info, 1, 1);
        }
        tsqr_copy(kind, rows, k, room.values, rows, in_block(local, b, block), ldb);
    }
    leave(&room);
    return 1;
}

int tsqr_local_project(const struct tsqr_local *local, int k, const void *b, int64_t ldb, void *c)
{
    const struct tsqr_kind *kind = local->kind;
    int n = local->columns, s = local->factor_rows, panel = tsqr_least(TSQR_PANEL, s), none = 0, info;
    struct room room;
    if (!enter(local, k, &room))
        return 0;
    for (int64_t block = 0; block < local->blocks; block++) {
        int rows = rows_of(local, block);
        tsqr_copy(kind, rows, n, in_block(local, local->a, block), local->lda, room.v, rows);
        tsqr_copy(kind, rows, k, in_block(local, b, block), ldb, room.values, rows);
        if (block == 0) {
            kind->gemqrt("L", kind->adjoint, &rows, &k, &s, &panel, room.v, &rows, t_of(local, block), &panel,
                         room.values, &rows, room.work, &info, 1, 1);
            tsqr_copy(kind, s, k, room.values, rows, c, n);
        } else {
            kind->tpmqrt("L", kind->adjoint, &rows, &k, &n, &none, &panel, room.v, &rows, t_of(local, block),
                         &panel, c, &n, room.values, &rows, room.work, &info, 1, 1);
        }
    }
    leave(&room);
    return 1;
}
