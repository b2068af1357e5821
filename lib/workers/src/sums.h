/* Sums of blocks, combined in an order that the number of blocks alone decides. Block b is the node b of
 * level 0 of a binary tree; node j of level k combines nodes 2 j and 2 j + 1 of the level below, in this
 * order, and is node 2 j alone where 2 j + 1 begins behind the last block. Whoever has both combines them, so
 * the same operations with the same operands are done whatever rank does them and when.
 *
 * Nodes are kept under an owner's number, and combined only with nodes of the same owner: what one chunk gave
 * can then be dropped. */
#ifndef CAUSEWAY_WORKERS_SUMS_H
#define CAUSEWAY_WORKERS_SUMS_H

#include <stddef.h>
#include <stdint.h>

struct workers_sum {
    int64_t owner, level, index;
    void *data;
};

struct workers_sums {
    int64_t blocks, bytes;
    void (*combine)(void *into, const void *later, void *context);
    void *context;
    struct workers_sum *nodes;
    size_t count, room;
};

/* Copies the node's `bytes`. */
void workers_sums_add(struct workers_sums *sums, int64_t owner, int64_t level, int64_t index,
                      const void *data);

/* The next node of an owner, from `*at` on, which begins with 0; NULL behind the last. */
const struct workers_sum *workers_sums_of(const struct workers_sums *sums, int64_t owner, size_t *at);

void workers_sums_drop(struct workers_sums *sums, int64_t owner);
void workers_sums_free(struct workers_sums *sums);

#endif
