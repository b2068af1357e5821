#include "sink.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

int64_t workers_block_items(const struct causeway_workers *job, int64_t block_items, int64_t block)
{
    int64_t left = job->items - block * block_items;
    return left < block_items ? left : block_items;
}

void workers_sink_open(struct workers_sink *sink, const struct causeway_workers *job, int64_t block_items)
{
    int64_t blocks = (job->items + block_items - 1) / block_items;
    memset(sink, 0, sizeof *sink);
    sink->job = job;
    sink->block_items = block_items;
    sink->is_there = workers_new(blocks / 8 + 1);
    if (job->has_lists && job->lists) {
        sink->list_bytes = workers_new(sizeof(int64_t) * job->items);
        sink->list_at = workers_new(sizeof(int64_t) * blocks);
    }
}

/* Keeps the lists of a block. */
static void keep(struct workers_sink *sink, int64_t block, int64_t items, const int64_t *list_bytes,
                 const char *lists)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < items; i++)
        bytes += list_bytes[i];
    memcpy(sink->list_bytes + block * sink->block_items, list_bytes, sizeof(int64_t) * items);
    sink->lists = workers_grown(sink->lists, sink->lists_bytes + bytes, &sink->lists_room, 1);
    while (sink->lists_bytes + bytes >= sink->lists_room)
        sink->lists = workers_grown(sink->lists, sink->lists_room, &sink->lists_room, 1);
    if (bytes)
        memcpy(sink->lists + sink->lists_bytes, lists, bytes);
    sink->list_at[block] = (int64_t)sink->lists_bytes;
    sink->lists_bytes += bytes;
}

void workers_sink_take(struct workers_sink *sink, int64_t block, const char *results)
{
    const struct causeway_workers *job = sink->job;
    if (sink->is_there[block / 8] >> block % 8 & 1)
        return;
    sink->is_there[block / 8] |= 1 << block % 8;
    int64_t first = block * sink->block_items, items = workers_block_items(job, sink->block_items, block);
    size_t bytes = (size_t)(items * job->result_bytes), padded = (bytes + 7) / 8 * 8;
    const int64_t *list_bytes = job->has_lists ? (const int64_t *)(results + padded) : NULL;
    const char *lists = job->has_lists ? (const char *)(list_bytes + items) : NULL;
    if (job->results && bytes)
        memcpy((char *)job->results + first * job->result_bytes, results, bytes);
    if (sink->list_bytes)
        keep(sink, block, items, list_bytes, lists);
    if (job->collect)
        job->collect(first, items, bytes ? results : NULL, list_bytes, lists, job->context);
}

/* Lists in the order of items. */
static void sort_lists(struct workers_sink *sink, struct causeway_workers_lists *lists)
{
    int64_t items = sink->job->items, at = 0;
    lists->offsets = workers_new(sizeof(int64_t) * (items + 1));
    lists->data = workers_new(sink->lists_bytes);
    for (int64_t i = 0; i < items; i++) {
        lists->offsets[i] = at;
        int64_t *from = sink->list_at + i / sink->block_items;
        if (sink->list_bytes[i])
            memcpy(lists->data + at, sink->lists + *from, sink->list_bytes[i]);
        *from += sink->list_bytes[i];
        at += sink->list_bytes[i];
    }
    lists->offsets[items] = at;
}

void workers_sink_close(struct workers_sink *sink, int is_complete)
{
    if (sink->list_bytes && is_complete)
        sort_lists(sink, sink->job->lists);
    free(sink->is_there);
    free(sink->list_bytes);
    free(sink->list_at);
    free(sink->lists);
}
