#include "hand.h"

#include "memory.h"
#include "sink.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* The speed is that of the last second or two: items differ, and hosts are shared. */
#define RATE_SECONDS 1.0

void workers_hand_open(struct workers_hand *hand, const struct causeway_workers *job, int64_t block_items)
{
    memset(hand, 0, sizeof *hand);
    hand->job = job;
    hand->block_items = block_items;
    hand->results = workers_new(block_items * job->result_bytes);
    hand->sum = workers_new(job->sum_bytes);
    hand->list_bytes = workers_new(sizeof(int64_t) * block_items);
    hand->sums = (struct workers_sums){.blocks = (job->items + block_items - 1) / block_items,
                                       .bytes = job->sum_bytes,
                                       .combine = job->combine,
                                       .context = job->context};
}

void workers_hand_close(struct workers_hand *hand)
{
    free(hand->results);
    free(hand->sum);
    free(hand->list_bytes);
    free(hand->lists);
    workers_sums_free(&hand->sums);
}

static void begin_block(struct workers_hand *hand)
{
    const struct causeway_workers *job = hand->job;
    hand->items_done = 0;
    hand->lists_bytes = 0;
    memset(hand->results, 0, hand->block_items * job->result_bytes);
    memset(hand->list_bytes, 0, sizeof(int64_t) * hand->block_items);
    if (job->sum_start)
        memcpy(hand->sum, job->sum_start, job->sum_bytes);
    else
        memset(hand->sum, 0, job->sum_bytes);
}

void workers_hand_begin(struct workers_hand *hand, int64_t unit, int64_t first, int64_t count)
{
    hand->is_busy = 1;
    hand->unit = unit;
    hand->block = first;
    hand->blocks_left = count;
    begin_block(hand);
}

void causeway_workers_append(const struct causeway_workers_item *item, const void *data, int64_t bytes)
{
    struct workers_hand *hand = item->list;
    while (hand->lists_bytes + bytes >= hand->lists_room)
        hand->lists = workers_grown(hand->lists, hand->lists_room, &hand->lists_room, 1);
    if (bytes > 0)
        memcpy(hand->lists + hand->lists_bytes, data, bytes);
    hand->lists_bytes += bytes;
    hand->list_bytes[hand->items_done] += bytes;
}

static void count_time(struct workers_hand *hand, double items, double seconds)
{
    if (hand->seconds > RATE_SECONDS) {
        hand->seconds /= 2;
        hand->blocks_done /= 2;
    }
    hand->seconds += seconds;
    hand->blocks_done += items / (double)hand->block_items;
}

static enum workers_step end_block(struct workers_hand *hand, int64_t *block)
{
    *block = hand->block++;
    hand->blocks_left--;
    if (hand->job->sum_bytes)
        workers_sums_add(&hand->sums, hand->unit, 0, *block, hand->sum);
    if (hand->blocks_left)
        return STEP_BLOCK;
    hand->is_busy = 0;
    return STEP_UNIT;
}

enum workers_step workers_hand_step(struct workers_hand *hand, double seconds, int64_t *block,
                                    struct workers_failure *failure)
{
    const struct causeway_workers *job = hand->job;
    int64_t items = workers_block_items(job, hand->block_items, hand->block), done = 0;
    double begun = MPI_Wtime(), now = begun;
    /* The block before this has been taken. */
    if (hand->items_done == 0 || hand->items_done == hand->block_items)
        begin_block(hand);
    while (hand->items_done < items && now < begun + seconds) {
        struct causeway_workers_item item = {
            .index = hand->block * hand->block_items + hand->items_done,
            .result = job->result_bytes ? hand->results + hand->items_done * job->result_bytes : NULL,
            .sum = job->sum_bytes ? hand->sum : NULL,
            .list = hand};
        int code = job->compute(&item, job->context);
        if (code) {
            *failure = (struct workers_failure){.item = item.index, .code = code};
            hand->is_busy = 0;
            return STEP_FAILED;
        }
        hand->items_done++;
        done++;
        now = MPI_Wtime();
    }
    count_time(hand, (double)done, now - begun);
    return hand->items_done < items ? STEP_ON : end_block(hand, block);
}

static size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

size_t workers_hand_bytes(const struct workers_hand *hand, int64_t block)
{
    int64_t items = workers_block_items(hand->job, hand->block_items, block);
    size_t bytes = padded(items * hand->job->result_bytes);
    return hand->job->has_lists ? bytes + sizeof(int64_t) * items + hand->lists_bytes : bytes;
}

void workers_hand_results(const struct workers_hand *hand, int64_t block, char *results)
{
    int64_t items = workers_block_items(hand->job, hand->block_items, block);
    size_t bytes = items * hand->job->result_bytes, at = padded(bytes);
    memcpy(results, hand->results, bytes);
    memset(results + bytes, 0, at - bytes);
    if (!hand->job->has_lists)
        return;
    memcpy(results + at, hand->list_bytes, sizeof(int64_t) * items);
    if (hand->lists_bytes)
        memcpy(results + at + sizeof(int64_t) * items, hand->lists, hand->lists_bytes);
}

double workers_hand_rate(const struct workers_hand *hand)
{
    return hand->blocks_done > 0 && hand->seconds > 0 ? hand->blocks_done / hand->seconds : 0;
}
