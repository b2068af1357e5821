/* scale SITES SHAPE ITEMS BLOCK_ITEMS ITEM_US MESSAGE_US NEAR_US ROUND_TRIPS_MS CORES: how long one run of
 * the workers library would take, in virtual time, with more ranks than this machine has cores for. Decisions
 * are the library's (schedule.c, tree.c). Every rank goes through the loop of node.c: it takes what has
 * arrived, computes for 100 us, hands out, and reports. What is simulated is time:
 *
 * - an item takes between a half and one and a half of ITEM_US, by its number;
 * - a message takes MESSAGE_US of the rank that sends it, and of the rank that gets it;
 * - it is on its way for half of NEAR_US in a site, and half of the round trip between two sites;
 * - with CORES above 0, all ranks share so many cores in equal parts.
 *
 * SITES is a list of ranks, as 60,60,60; SHAPE is flat or hierarchical; ROUND_TRIPS_MS lists pairs of sites:
 * 0 with 1, 0 with 2, 1 with 2, 0 with 3 and so on. It prints one line of CSV: ranks, groups, shape, seconds,
 * the ideal (what items take, shared among all ranks), messages of rank 0, those with other sites, and the
 * share of its time that rank 0 spends on messages. */
#include "../../../lib/workers/src/memory.h"
#include "../../../lib/workers/src/schedule.h"
#include "../../../lib/workers/src/tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in node.c. */
#define LOOK_SECONDS 100e-6
#define COMPUTING_BOSS_CHILDREN 16
/* Who is idle looks again so often for copies to give out, as in schedule.c. */
#define IDLE_SECONDS 0.001
/* As in links.c. */
#define MESSAGE_SECONDS_MOST 50e-6
#define MOST_SITES 8

enum kind { GRANT, ASK, COMPLETE };

struct record {
    enum kind kind;
    int from, is_first;
    int64_t unit, first, count;
    double rate;
};

struct records {
    struct record *record;
    size_t count, room, taken;
};

struct rank {
    int parent, children, *ranks, *child_of, computes, site;
    struct workers_schedule *schedule;
    struct records inbox, open;
    int is_asking, is_busy;
    /* `turns` is the number of its last turn that was planned: others before it are void. */
    int64_t unit, item, end, turns;
    double blocks_done, seconds, free_at;
};

/* A rank's turn, or what arrives at it. */
struct event {
    double time;
    int64_t order;
    int rank;
    /* The number of a turn; 0 of something that arrives. */
    int64_t turn;
    struct record record;
};

static struct {
    struct event *heap;
    size_t events, room;
    int64_t order;
    struct rank *ranks;
    struct workers_tree *tree;
    int64_t items, block_items, messages, messages_far;
    double item, message, near, round_trips[MOST_SITES][MOST_SITES], slowness, busy, ended;
} sim;

static int is_before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void push(struct event event)
{
    sim.heap = workers_grown(sim.heap, sim.events, &sim.room, sizeof *sim.heap);
    event.order = sim.order++;
    size_t at = sim.events++;
    for (; at && is_before(&event, sim.heap + (at - 1) / 2); at = (at - 1) / 2)
        sim.heap[at] = sim.heap[(at - 1) / 2];
    sim.heap[at] = event;
}

static struct event pop(void)
{
    struct event top = sim.heap[0], last = sim.heap[--sim.events];
    size_t at = 0, next;
    while ((next = 2 * at + 1) < sim.events) {
        next += next + 1 < sim.events && is_before(sim.heap + next + 1, sim.heap + next);
        if (is_before(&last, sim.heap + next))
            break;
        sim.heap[at] = sim.heap[next];
        at = next;
    }
    sim.heap[at] = last;
    return top;
}

static void append(struct records *records, struct record record)
{
    records->record = workers_grown(records->record, records->count, &records->room, sizeof record);
    records->record[records->count++] = record;
}

static double round_trip(int a, int b)
{
    int from = sim.ranks[a].site, to = sim.ranks[b].site;
    return from == to ? sim.near : sim.round_trips[from][to];
}

/* A message takes its time of the rank that handles it. */
static void pay(int number, int other, double *now)
{
    *now += sim.message;
    if (number)
        return;
    sim.busy += sim.message;
    sim.messages++;
    sim.messages_far += sim.ranks[other].site != sim.ranks[0].site;
}

static void send(int from, int to, struct record record, double now)
{
    record.from = from;
    push((struct event){.time = now + round_trip(from, to) / 2, .rank = to, .record = record});
}

/* Between a half and one and a half of the mean, by the item's number. */
static double item_seconds(int64_t item)
{
    uint64_t bits = (uint64_t)(item + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return sim.item * sim.slowness * (0.5 + (double)(bits >> 11) / 9007199254740992.0);
}

/* As end_grant and on_complete of node.c. */
static void complete(int number, int child, int64_t unit, double now)
{
    struct rank *rank = sim.ranks + number;
    struct workers_outcome outcome = workers_schedule_complete(rank->schedule, child, unit, now);
    if (!outcome.is_first || !outcome.ends_grant)
        return;
    if (number)
        append(&rank->open, (struct record){.kind = COMPLETE, .unit = outcome.grant});
    else
        sim.ended = now;
}

static void take_records(int number, double *now)
{
    struct rank *rank = sim.ranks + number;
    while (rank->inbox.taken < rank->inbox.count && sim.ended == 0) {
        struct record record = rank->inbox.record[rank->inbox.taken++];
        int child = rank->child_of[record.from];
        if (record.is_first)
            pay(number, record.from, now);
        if (record.kind != GRANT)
            workers_schedule_rate(rank->schedule, child, record.rate);
        if (record.kind == GRANT)
            workers_schedule_grant(rank->schedule, record.unit, record.first, record.count);
        else if (record.kind == ASK)
            workers_schedule_ask(rank->schedule, child);
        else
            complete(number, child, record.unit, *now);
    }
    rank->inbox.count = rank->inbox.taken = 0;
}

/* As workers_hand_step. */
static void compute(int number, double *now)
{
    struct rank *rank = sim.ranks + number;
    double begun = *now;
    if (!rank->is_busy)
        return;
    do
        *now += item_seconds(rank->item++);
    while (*now < begun + LOOK_SECONDS && rank->item < rank->end && rank->item % sim.block_items);
    if (rank->seconds > 1) {
        rank->seconds /= 2;
        rank->blocks_done /= 2;
    }
    rank->seconds += *now - begun;
    if (rank->item % sim.block_items == 0 || rank->item == rank->end)
        rank->blocks_done++;
    if (rank->blocks_done > 0)
        workers_schedule_rate(rank->schedule, 0, rank->blocks_done / rank->seconds);
    if (rank->item < rank->end)
        return;
    rank->is_busy = 0;
    complete(number, 0, rank->unit, *now);
}

/* As hand_out of node.c. */
static void hand_out(int number, double *now)
{
    struct rank *rank = sim.ranks + number;
    struct workers_chunk chunk;
    if (rank->computes && !rank->is_busy && !rank->is_asking) {
        rank->is_asking = 1;
        workers_schedule_ask(rank->schedule, 0);
    }
    while (workers_schedule_next(rank->schedule, *now, &chunk)) {
        if (chunk.child) {
            int to = rank->ranks[chunk.child - 1];
            pay(number, to, now);
            send(number, to,
                 (struct record){.kind = GRANT,
                                 .is_first = 1,
                                 .unit = chunk.unit,
                                 .first = chunk.first,
                                 .count = chunk.count},
                 *now);
            continue;
        }
        rank->is_asking = 0;
        rank->is_busy = 1;
        rank->unit = chunk.unit;
        rank->item = chunk.first * sim.block_items;
        rank->end = (chunk.first + chunk.count) * sim.block_items;
        rank->end = rank->end < sim.items ? rank->end : sim.items;
    }
    if (number && workers_schedule_wants_more(rank->schedule))
        append(&rank->open, (struct record){.kind = ASK});
}

static void flush(int number, double *now)
{
    struct rank *rank = sim.ranks + number;
    if (!rank->open.count)
        return;
    pay(number, rank->parent, now);
    rank->open.record[0].is_first = 1;
    for (size_t i = 0; i < rank->open.count; i++) {
        rank->open.record[i].rate = workers_schedule_total_rate(rank->schedule);
        send(number, rank->parent, rank->open.record[i], *now);
    }
    rank->open.count = 0;
}

/* One pass of the loop in node.c. */
static void turn(int number, double now)
{
    struct rank *rank = sim.ranks + number;
    take_records(number, &now);
    if (sim.ended == 0)
        compute(number, &now);
    if (sim.ended > 0)
        return;
    hand_out(number, &now);
    flush(number, &now);
    rank->free_at = now;
    rank->turns++;
    if (rank->is_busy || rank->children)
        push((struct event){
            .time = rank->is_busy ? now : now + IDLE_SECONDS, .rank = number, .turn = rank->turns});
}

/* Something has arrived. Who is idle looks at once, who computes between items. */
static void arrive(const struct event *event)
{
    struct rank *rank = sim.ranks + event->rank;
    append(&rank->inbox, event->record);
    if (!rank->is_busy)
        turn(event->rank, fmax(event->time, rank->free_at));
}

static int computes(int number)
{
    int children = 0;
    for (int i = 0; i < sim.tree->ranks; i++)
        children += sim.tree->parents[i] == number;
    return children <= COMPUTING_BOSS_CHILDREN;
}

static int weight_of(int number)
{
    int weight = computes(number);
    for (int i = number + 1; i < sim.tree->ranks; i++)
        if (sim.tree->parents[i] == number)
            weight += weight_of(i);
    return weight;
}

/* What the rank would measure of a message's cost: as workers_links_message_seconds. */
static double measured_message(const struct workers_child *children, int count)
{
    double seconds = MESSAGE_SECONDS_MOST;
    for (int i = 1; i < count; i++)
        seconds = fmin(seconds, children[i].round_trip_seconds / 2);
    return seconds;
}

static void open_rank(int number)
{
    struct rank *rank = sim.ranks + number;
    int ranks = sim.tree->ranks;
    struct workers_child *children = workers_new(sizeof *children * (ranks + 1));
    rank->parent = sim.tree->parents[number];
    rank->computes = computes(number);
    rank->ranks = workers_new(sizeof(int) * ranks);
    rank->child_of = workers_new(sizeof(int) * ranks);
    children[0].weight = rank->computes;
    for (int i = 0; i < ranks; i++)
        if (sim.tree->parents[i] == number) {
            rank->ranks[rank->children++] = i;
            rank->child_of[i] = rank->children;
            children[rank->children] =
                (struct workers_child){round_trip(number, i) + 4 * sim.message, weight_of(i)};
        }
    rank->schedule = workers_schedule_new(children, rank->children + 1, 3, 0,
                                          measured_message(children, rank->children + 1));
    free(children);
}

static _Noreturn void usage(const char *what)
{
    fprintf(stderr, "scale: %s; its first comment says what it is given\n", what);
    exit(2);
}

static void read_round_trips(const char *text, int sites)
{
    char *end;
    for (int b = 1; b < sites; b++)
        for (int a = 0; a < b; a++) {
            double seconds = strtod(text, &end) / 1000;
            if (end == text)
                usage("round trips are missing");
            sim.round_trips[a][b] = sim.round_trips[b][a] = seconds;
            text = end + (*end == ',');
        }
}

static int read_words(char **word)
{
    int ranks = 0, sites = 0;
    for (const char *at = word[1]; *at; sites++, at += *at == ',')
        ranks += (int)strtol(at, (char **)&at, 10);
    if (ranks < 1 || sites > MOST_SITES)
        usage("SITES is a list of numbers of ranks");
    sim.tree = workers_tree_new(ranks);
    const char *wrong = workers_tree_read(sim.tree, word[1]);
    if (wrong)
        usage(wrong);
    workers_tree_grow(sim.tree, sites < 2 || strcmp(word[2], "hierarchical") != 0);
    sim.items = strtoll(word[3], NULL, 10);
    sim.block_items = strtoll(word[4], NULL, 10);
    if (sim.items < 1 || sim.block_items < 1)
        usage("ITEMS and BLOCK_ITEMS are at least 1");
    sim.item = strtod(word[5], NULL) * 1e-6;
    sim.message = strtod(word[6], NULL) * 1e-6;
    sim.near = strtod(word[7], NULL) * 1e-6;
    read_round_trips(word[8], sites);
    int cores = (int)strtol(word[9], NULL, 10);
    sim.slowness = cores > 0 && ranks > cores ? (double)ranks / cores : 1;
    return sites;
}

int main(int argc, char **argv)
{
    if (argc != 10)
        usage("nine words are wanted");
    int sites = read_words(argv), ranks = sim.tree->ranks;
    double work = 0, farthest = 0;
    sim.ranks = workers_new(sizeof *sim.ranks * ranks);
    for (int i = 0; i < ranks; i++)
        sim.ranks[i].site = sites > 1 ? sim.tree->colors[i] : 0;
    for (int i = 0; i < ranks; i++)
        open_rank(i);
    for (int64_t i = 0; i < sim.items; i++)
        work += item_seconds(i);
    for (int i = 1; i < ranks; i++)
        farthest = fmax(farthest, round_trip(0, i));
    workers_schedule_grant(sim.ranks[0].schedule, 0, 0, (sim.items + sim.block_items - 1) / sim.block_items);
    for (int i = 0; i < ranks; i++)
        turn(i, 0);
    while (sim.ended == 0) {
        struct event event = pop();
        if (!event.turn)
            arrive(&event);
        else if (event.turn == sim.ranks[event.rank].turns)
            turn(event.rank, event.time);
    }
    printf("%d,%d,%s,%.4f,%.4f,%" PRId64 ",%" PRId64 ",%.3f\n", ranks, sites, argv[2], sim.ended + farthest,
           work / sim.slowness / ranks * sim.slowness, sim.messages, sim.messages_far, sim.busy / sim.ended);
    return 0;
}
