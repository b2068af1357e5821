/* Where results end: rank 0 puts each in its place, once. */
#ifndef CAUSEWAY_WORKERS_SINK_H
#define CAUSEWAY_WORKERS_SINK_H

#include "../causeway_workers.h"

#include <stddef.h>

struct workers_sink {
    const struct causeway_workers *job;
    int64_t block_items;
    /* A bit for each block: its results are there. */
    unsigned char *is_there;
    /* Lists in the order in which they came: the sizes of all items, and where each block's begin. */
    int64_t *list_bytes, *list_at;
    char *lists;
    size_t lists_bytes, lists_room;
};

void workers_sink_open(struct workers_sink *sink, const struct causeway_workers *job, int64_t block_items);

/* Results of one block, as a record has them behind the block's number; a second time they are dropped. */
void workers_sink_take(struct workers_sink *sink, int64_t block, const char *results);

/* Gives the caller its lists, in order, if all is there, and frees the rest. */
void workers_sink_close(struct workers_sink *sink, int is_complete);

/* How many items a block has: the last may have fewer. */
int64_t workers_block_items(const struct causeway_workers *job, int64_t block_items, int64_t block);

#endif
