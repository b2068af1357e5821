#include "sums.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

static struct workers_sum *find(const struct workers_sums *sums, int64_t owner, int64_t level, int64_t index)
{
    for (size_t i = 0; i < sums->count; i++) {
        struct workers_sum *node = sums->nodes + i;
        if (node->owner == owner && node->level == level && node->index == index)
            return node;
    }
    return NULL;
}

/* Frees a node; the last takes its place. */
static void drop(struct workers_sums *sums, struct workers_sum *node)
{
    free(node->data);
    *node = sums->nodes[--sums->count];
}

/* Whether a node is the only one of its level. */
static int is_whole(const struct workers_sums *sums, int64_t level)
{
    return sums->blocks - 1 < INT64_C(1) << level;
}

void workers_sums_add(struct workers_sums *sums, int64_t owner, int64_t level, int64_t index,
                      const void *data)
{
    struct workers_sum node = {owner, level, index, workers_new(sums->bytes)};
    memcpy(node.data, data, sums->bytes);
    while (!is_whole(sums, node.level)) {
        int64_t brother = node.index ^ 1;
        struct workers_sum *other = find(sums, owner, node.level, brother);
        if (other && brother < node.index) {
            sums->combine(other->data, node.data, sums->context);
            free(node.data);
            node.data = other->data;
            other->data = NULL;
            drop(sums, other);
        } else if (other) {
            sums->combine(node.data, other->data, sums->context);
            drop(sums, other);
        } else if (brother < node.index || brother << node.level < sums->blocks) {
            break;
        }
        node.level++;
        node.index /= 2;
    }
    sums->nodes = workers_grown(sums->nodes, sums->count, &sums->room, sizeof *sums->nodes);
    sums->nodes[sums->count++] = node;
}

const struct workers_sum *workers_sums_of(const struct workers_sums *sums, int64_t owner, size_t *at)
{
    while (*at < sums->count)
        if (sums->nodes[(*at)++].owner == owner)
            return sums->nodes + *at - 1;
    return NULL;
}

void workers_sums_drop(struct workers_sums *sums, int64_t owner)
{
    for (size_t i = sums->count; i-- > 0;)
        if (sums->nodes[i].owner == owner)
            drop(sums, sums->nodes + i);
}

void workers_sums_free(struct workers_sums *sums)
{
    while (sums->count)
        drop(sums, sums->nodes);
    free(sums->nodes);
    sums->nodes = NULL;
    sums->room = 0;
}
