/* What the programs tsqr and pdgeqrf share: their options, and the table that each prints, one row a run. */
#ifndef TSQR_TABLE_H
#define TSQR_TABLE_H

#include "matrix.h"

struct options {
    int64_t rows, columns, runs, seed, block;
    int has_no_q, has_no_check;
};

/* One way to factorise. All functions are collective. */
struct table_method {
    const char *name;
    int sites;
    void *context;
    /* This is timed. It gives NULL, or why it failed, which all ranks know. */
    const char *(*factor)(void *context, struct matrix *m, int wants_q);
    /* Brings R to all ranks where factor leaves it at rank 0; may be NULL. */
    void (*share_r)(struct matrix *m);
    /* Messages between sites since the start, at this rank. */
    int64_t (*far_messages)(void *context);
};

/* Ends the job with a sentence. Rank 0 alone says it where all ranks know. */
void table_fail(const char *program, const char *sentence, int is_known_to_all);

/* Reads --rows, --columns, --runs, --seed, --no-q and --no-check, with takes_block --block too. Fails at a
 * mistake. */
struct options table_options(const char *program, char **argv, int takes_block);

void table_print(const struct table_method *method, const struct options *options);

#endif
