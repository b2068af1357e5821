/* A rank's own computing: one unit at a time, item by item, so that messages can be looked at between
 * items. It knows no messages. */
#ifndef CAUSEWAY_WORKERS_HAND_H
#define CAUSEWAY_WORKERS_HAND_H

#include "../causeway_workers.h"
#include "records.h"
#include "sums.h"

struct workers_hand {
    const struct causeway_workers *job;
    int64_t block_items;
    /* The unit, and blocks of it that are not begun or not done. */
    int is_busy;
    int64_t unit, block, blocks_left;
    /* Counts those of this block that are done. */
    int64_t items_done;
    char *results, *sum;
    int64_t *list_bytes;
    char *lists;
    size_t lists_bytes, lists_room;
    /* Sums of the unit's blocks. */
    struct workers_sums sums;
    /* Blocks and seconds of late. */
    double blocks_done, seconds;
};

void workers_hand_open(struct workers_hand *hand, const struct causeway_workers *job, int64_t block_items);
void workers_hand_close(struct workers_hand *hand);

void workers_hand_begin(struct workers_hand *hand, int64_t unit, int64_t first, int64_t count);

enum workers_step {
    /* Time is over. */
    STEP_ON,
    /* A block is done: its results can be taken, with workers_hand_results. */
    STEP_BLOCK,
    /* So is the unit. */
    STEP_UNIT,
    STEP_FAILED
};

/* Computes until a block is done, or `seconds` are over. `*block` is the one that is done; `*failure` has
 * item and code. */
enum workers_step workers_hand_step(struct workers_hand *hand, double seconds, int64_t *block,
                                    struct workers_failure *failure);

/* Bytes of the results of the last block that was done, and the results as a record has them. */
size_t workers_hand_bytes(const struct workers_hand *hand, int64_t block);
void workers_hand_results(const struct workers_hand *hand, int64_t block, char *results);

/* Blocks a second; 0 while none is done. */
double workers_hand_rate(const struct workers_hand *hand);

#endif
