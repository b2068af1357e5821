/* The line on standard error that says how far the work is. */
#ifndef CAUSEWAY_WORKERS_PROGRESS_H
#define CAUSEWAY_WORKERS_PROGRESS_H

#include "tree.h"

#include <stdint.h>

struct workers_progress {
    int is_shown, groups, is_terminal;
    int64_t items, block_items, blocks, done;
    /* The group of each rank, and the blocks that each group has done. */
    int *group_of;
    int64_t *done_by;
    double begun, next;
};

void workers_progress_open(struct workers_progress *progress, const struct workers_tree *tree, int is_shown,
                           int64_t items, int64_t block_items, double now);
void workers_progress_done(struct workers_progress *progress, int rank, int64_t blocks);

/* Shows the line once a second, and at the end. */
void workers_progress_show(struct workers_progress *progress, double now, int is_end);
void workers_progress_close(struct workers_progress *progress);

#endif
