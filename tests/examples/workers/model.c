/* model SEED RUNS: whole runs of the workers library in virtual time, without MPI: schedules and sums of
 * every rank are the library's, messages and computing are simulated. Ranks differ in speed, blocks in cost;
 * units fail at random, ranks fall silent or are lost. Every run must accept each block exactly once, give
 * the sum that one rank gives to the last bit, keep no more units than chunks asked for, and, where nothing
 * fails, end near the ideal time. A failing run prints its seed; `model SEED 1` repeats it. */
#include "../../../lib/workers/src/memory.h"
#include "../../../lib/workers/src/schedule.h"
#include "../../../lib/workers/src/sums.h"
#include "../../../lib/workers/src/tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 24
#define TICK_SECONDS 0.001

static uint64_t seed, state;

static double random_number(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) / 9007199254740992.0;
}

static int random_below(int bound) { return (int)(random_number() * bound); }

enum kind { GRANT, ASK, COMPLETE, FAILED, COMPUTED, LOST, TICK };

struct event {
    double time;
    int64_t order;
    enum kind kind;
    int rank, from;
    int64_t unit, first, count;
    double rate;
    /* Sums that a COMPLETE carries. */
    struct workers_sum *sums;
    int sum_count;
};

struct rank {
    struct workers_schedule *schedule;
    struct workers_sums sums;
    int parent, children, ranks[MOST_RANKS], child_of[MOST_RANKS];
    double round_trip, seconds_a_block, silent_at;
    int is_asking, is_busy, is_bad, has_tick;
    int64_t unit, first, count;
    double blocks_done, seconds;
};

static struct {
    struct event *heap;
    size_t events, room;
    int64_t order;
    double now;
    struct rank ranks[MOST_RANKS];
    int count;
    int64_t blocks, accepted;
    double *costs, *values;
    unsigned char *is_done;
    /* Ranges of rank 0's units. */
    int64_t *firsts, *counts;
    size_t firsts_room, counts_room;
    int fails, is_over, is_given_up, most_units;
    double sum;
} sim;

static _Noreturn void wrong(const char *what)
{
    printf("model: %s; run it again with: model %" PRIu64 " 1\n", what, seed);
    exit(1);
}

static int is_before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void push(struct event event)
{
    sim.heap = workers_grown(sim.heap, sim.events, &sim.room, sizeof *sim.heap);
    event.order = sim.order++;
    size_t at = sim.events++;
    while (at && is_before(&event, sim.heap + (at - 1) / 2)) {
        sim.heap[at] = sim.heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim.heap[at] = event;
}

static struct event pop(void)
{
    struct event top = sim.heap[0], last = sim.heap[--sim.events];
    size_t at = 0;
    for (;;) {
        size_t next = 2 * at + 1;
        if (next >= sim.events)
            break;
        if (next + 1 < sim.events && is_before(sim.heap + next + 1, sim.heap + next))
            next++;
        if (is_before(&last, sim.heap + next))
            break;
        sim.heap[at] = sim.heap[next];
        at = next;
    }
    sim.heap[at] = last;
    return top;
}

static void add(void *into, const void *later, void *context)
{
    (void)context;
    /* The order counts, and so does which operand is which. */
    *(double *)into = *(double *)into * 0.75 + *(const double *)later;
}

/* A message to a rank's boss. */
static void report(int rank, struct event event)
{
    struct rank *sender = sim.ranks + rank;
    event.time = sim.now + sender->round_trip / 2;
    event.rank = sender->parent;
    event.from = rank;
    event.rate = workers_schedule_total_rate(sender->schedule);
    push(event);
}

static void accept(int64_t unit)
{
    for (int64_t i = 0; i < sim.counts[unit]; i++) {
        if (sim.is_done[sim.firsts[unit] + i]++)
            wrong("a block was accepted twice");
        sim.accepted++;
    }
}

/* As end_grant of node.c. */
static void end_grant(int number, int64_t grant)
{
    struct rank *rank = sim.ranks + number;
    size_t at = 0;
    const struct workers_sum *sum;
    if (number == 0) {
        sim.is_over = 1;
        sim.sum = *(double *)workers_sums_of(&rank->sums, grant, &at)->data;
        return;
    }
    struct event event = {.kind = COMPLETE, .unit = grant};
    event.sums = workers_new(sizeof *event.sums * (rank->sums.count + 1));
    while ((sum = workers_sums_of(&rank->sums, grant, &at))) {
        event.sums[event.sum_count] = *sum;
        event.sums[event.sum_count].data = workers_new(sizeof(double));
        memcpy(event.sums[event.sum_count++].data, sum->data, sizeof(double));
    }
    workers_sums_drop(&rank->sums, grant);
    report(number, event);
}

static void on_complete(int number, int child, struct event *event)
{
    struct rank *rank = sim.ranks + number;
    struct workers_outcome outcome = workers_schedule_complete(rank->schedule, child, event->unit, sim.now);
    for (int i = 0; i < event->sum_count; i++) {
        struct workers_sum *sum = event->sums + i;
        if (outcome.is_first)
            workers_sums_add(&rank->sums, outcome.grant, sum->level, sum->index, sum->data);
        free(sum->data);
    }
    free(event->sums);
    if (!outcome.is_first)
        return;
    if (number == 0)
        accept(event->unit);
    if (outcome.ends_grant)
        end_grant(number, outcome.grant);
}

static void on_failed(int number, int child, int64_t unit)
{
    struct rank *rank = sim.ranks + number;
    struct workers_outcome outcome = workers_schedule_fail(rank->schedule, child, unit, sim.now);
    if (!outcome.is_first || !outcome.ends_grant)
        return;
    workers_sums_drop(&rank->sums, outcome.grant);
    if (number == 0)
        sim.is_given_up = sim.is_over = 1;
    else
        report(number, (struct event){.kind = FAILED, .unit = outcome.grant});
}

/* The rank's own unit is done; its sums are those of its blocks. */
static void on_computed(int number)
{
    struct rank *rank = sim.ranks + number;
    rank->is_busy = 0;
    if (rank->is_bad && random_number() < 0.3) {
        on_failed(number, 0, rank->unit);
        return;
    }
    workers_schedule_rate(rank->schedule, 0, rank->blocks_done / rank->seconds);
    struct event event = {.unit = rank->unit, .sum_count = (int)rank->count};
    event.sums = workers_new(sizeof *event.sums * rank->count);
    for (int64_t i = 0; i < rank->count; i++) {
        event.sums[i] = (struct workers_sum){.index = rank->first + i, .data = workers_new(sizeof(double))};
        memcpy(event.sums[i].data, sim.values + rank->first + i, sizeof(double));
    }
    on_complete(number, 0, &event);
}

static void begin(int number, const struct workers_chunk *chunk)
{
    struct rank *rank = sim.ranks + number;
    double seconds = 0;
    for (int64_t i = 0; i < chunk->count; i++)
        seconds += sim.costs[chunk->first + i] * rank->seconds_a_block;
    rank->is_asking = 0;
    rank->is_busy = 1;
    rank->unit = chunk->unit;
    rank->first = chunk->first;
    rank->count = chunk->count;
    rank->seconds += seconds;
    rank->blocks_done += (double)chunk->count;
    if (sim.now + seconds < rank->silent_at)
        push((struct event){.time = sim.now + seconds, .kind = COMPUTED, .rank = number});
}

/* As hand_out of node.c. */
static void hand_out(int number)
{
    struct rank *rank = sim.ranks + number;
    struct workers_chunk chunk;
    if (!rank->is_busy && !rank->is_asking) {
        rank->is_asking = 1;
        workers_schedule_ask(rank->schedule, 0);
    }
    while (workers_schedule_next(rank->schedule, sim.now, &chunk)) {
        if (number == 0) {
            sim.firsts = workers_grown(sim.firsts, chunk.unit, &sim.firsts_room, sizeof *sim.firsts);
            sim.counts = workers_grown(sim.counts, chunk.unit, &sim.counts_room, sizeof *sim.counts);
            sim.firsts[chunk.unit] = chunk.first;
            sim.counts[chunk.unit] = chunk.count;
        }
        int child = chunk.child ? rank->ranks[chunk.child - 1] : number;
        if (child == number)
            begin(number, &chunk);
        else
            push((struct event){.time = sim.now + sim.ranks[child].round_trip / 2,
                                .kind = GRANT,
                                .rank = child,
                                .unit = chunk.unit,
                                .first = chunk.first,
                                .count = chunk.count});
    }
    int units = workers_schedule_units(rank->schedule);
    /* Each rank has one chunk and one more, and a boss a third of its own. */
    if (units > 4 * sim.count)
        wrong("units grow beyond what ranks can ask for");
    sim.most_units = units > sim.most_units ? units : sim.most_units;
    if (number && workers_schedule_wants_more(rank->schedule))
        report(number, (struct event){.kind = ASK});
    if (!rank->has_tick) {
        rank->has_tick = 1;
        push((struct event){.time = sim.now + TICK_SECONDS, .kind = TICK, .rank = number});
    }
}

static void on_event(struct event *event)
{
    struct rank *rank = sim.ranks + event->rank;
    int child = rank->child_of[event->from];
    if (event->kind == ASK || event->kind == COMPLETE || event->kind == FAILED)
        workers_schedule_rate(rank->schedule, child, event->rate);
    switch (event->kind) {
    case GRANT:
        workers_schedule_grant(rank->schedule, event->unit, event->first, event->count);
        break;
    case ASK:
        workers_schedule_ask(rank->schedule, child);
        break;
    case COMPLETE:
        on_complete(event->rank, child, event);
        break;
    case FAILED:
        on_failed(event->rank, child, event->unit);
        break;
    case COMPUTED:
        on_computed(event->rank);
        break;
    case LOST:
        workers_schedule_lose(rank->schedule, child);
        break;
    case TICK:
        rank->has_tick = 0;
        break;
    }
    if (!sim.is_over)
        hand_out(event->rank);
}

static double round_trip_of(const struct workers_tree *tree, int rank)
{
    int boss = tree->parents[rank];
    if (boss < 0)
        return 0;
    int is_far = tree->levels && tree->colors[rank] != tree->colors[boss];
    return is_far ? 0.002 + 0.02 * random_number() : 20e-6 + 80e-6 * random_number();
}

static int weight_of(const struct workers_tree *tree, int rank)
{
    int weight = 1;
    for (int i = 0; i < tree->ranks; i++)
        if (tree->parents[i] == rank)
            weight += weight_of(tree, i);
    return weight;
}

static void make_ranks(const struct workers_tree *tree)
{
    double block = pow(10, -5 + 2.5 * random_number());
    for (int i = 0; i < tree->ranks; i++) {
        struct rank *rank = sim.ranks + i;
        memset(rank, 0, sizeof *rank);
        rank->parent = tree->parents[i];
        rank->round_trip = round_trip_of(tree, i);
        rank->seconds_a_block = block * (1 + 3 * random_number());
        rank->silent_at = INFINITY;
    }
    for (int i = 0; i < tree->ranks; i++) {
        struct rank *rank = sim.ranks + i;
        struct workers_child children[MOST_RANKS] = {{0, 1}};
        for (int other = 0; other < tree->ranks; other++)
            if (tree->parents[other] == i) {
                rank->ranks[rank->children++] = other;
                rank->child_of[other] = rank->children;
                children[rank->children] =
                    (struct workers_child){sim.ranks[other].round_trip, weight_of(tree, other)};
            }
        /* Enough attempts that thirty in a hundred failures never use them up. */
        rank->schedule =
            workers_schedule_new(children, rank->children + 1, rank->children || !i ? 20 : 1, 0, 5e-6);
        rank->sums = (struct workers_sums){.blocks = sim.blocks, .bytes = sizeof(double), .combine = add};
        if (sim.fails) {
            rank->is_bad = i && random_below(3) == 0;
            /* A boss is silent together with all below it, so leaves alone are. */
            if (i && !rank->children && random_below(4) == 0)
                rank->silent_at = random_number() * (double)sim.blocks * block / tree->ranks;
            /* Some bosses are told, sooner than a last message arrives. */
            if (isfinite(rank->silent_at) && random_below(2))
                push((struct event){
                    .time = rank->silent_at + 0.001, .kind = LOST, .rank = rank->parent, .from = i});
        }
    }
    workers_schedule_grant(sim.ranks[0].schedule, 0, 0, sim.blocks);
}

/* The sum that one rank makes: node by node, level by level. */
static double serial_sum(void)
{
    struct workers_sums sums = {.blocks = sim.blocks, .bytes = sizeof(double), .combine = add};
    for (int64_t i = 0; i < sim.blocks; i++)
        workers_sums_add(&sums, 0, 0, i, sim.values + i);
    if (sums.count != 1)
        wrong("the sums of one rank are not one");
    double sum = *(double *)sums.nodes[0].data;
    workers_sums_free(&sums);
    return sum;
}

/* What a run without failures may take: the ideal, and what README.md says comes on top. */
static double bound(double *ideal)
{
    double speed = 0, work = 0, far = 0, slowest = 0, dearest = 0;
    for (int64_t i = 0; i < sim.blocks; i++) {
        work += sim.costs[i];
        dearest = fmax(dearest, sim.costs[i]);
    }
    for (int i = 0; i < sim.count; i++) {
        speed += 1 / sim.ranks[i].seconds_a_block;
        far = fmax(far, sim.ranks[i].round_trip);
        slowest = fmax(slowest, sim.ranks[i].seconds_a_block);
    }
    *ideal = work / speed;
    return 1.1 * *ideal + 10 * far + 2 * dearest * slowest + 0.02;
}

static struct workers_tree *make_tree(void)
{
    char groups[100] = "";
    int ranks = 0, count = 1 + random_below(4);
    for (int i = 0; i < count; i++) {
        int one = 1 + random_below(3), two = random_below(4);
        snprintf(groups + strlen(groups), sizeof groups - strlen(groups), two ? "%s%d+%d" : "%s%d",
                 i ? "," : "", one, two);
        ranks += one + two;
    }
    struct workers_tree *tree = workers_tree_new(ranks);
    const char *what = workers_tree_read(tree, groups);
    if (what)
        wrong(what);
    workers_tree_grow(tree, random_below(3) == 0);
    return tree;
}

/* One run; returns how much longer than the ideal it took. */
static double run(void)
{
    state = seed * UINT64_C(2654435769) + 12345;
    for (int i = 0; i < 4; i++)
        random_number();
    struct workers_tree *tree = make_tree();
    sim.count = tree->ranks;
    sim.blocks = 1 + (int64_t)pow(10, 3.7 * random_number());
    sim.fails = random_below(2);
    sim.is_over = sim.is_given_up = sim.most_units = 0;
    sim.now = 0;
    sim.accepted = 0;
    sim.events = 0;
    sim.costs = workers_new(sizeof(double) * sim.blocks);
    sim.values = workers_new(sizeof(double) * sim.blocks);
    sim.is_done = workers_new(sim.blocks);
    double spread = random_number();
    for (int64_t i = 0; i < sim.blocks; i++) {
        sim.costs[i] = exp(2 * spread * (random_number() - 0.5));
        sim.values[i] = random_number() - 0.5;
    }
    make_ranks(tree);
    for (int i = 0; i < sim.count; i++)
        hand_out(i);
    while (!sim.is_over) {
        struct event event = pop();
        sim.now = event.time;
        if (sim.now > 1e4)
            wrong("the run does not end");
        /* Who is silent neither computes nor answers. */
        if (sim.now < sim.ranks[event.rank].silent_at)
            on_event(&event);
    }
    double ideal, most = bound(&ideal), sum = serial_sum();
    if (sim.is_given_up)
        wrong("a chunk was given up though some rank can do it");
    if (sim.accepted != sim.blocks)
        wrong("the run ended before all blocks were done");
    if (memcmp(&sum, &sim.sum, sizeof sum) != 0)
        wrong("the sum is not that of one rank");
    if (!sim.fails && sim.now > most) {
        printf("model: %d ranks, %" PRId64 " blocks: %g s, ideally %g s, at most %g s\n", sim.count,
               sim.blocks, sim.now, ideal, most);
        wrong("the run ended too late");
    }
    double over = sim.now - ideal;
    for (int i = 0; i < sim.count; i++) {
        workers_schedule_free(sim.ranks[i].schedule);
        workers_sums_free(&sim.ranks[i].sums);
    }
    while (sim.events) {
        struct event event = pop();
        for (int i = 0; i < event.sum_count; i++)
            free(event.sums[i].data);
        free(event.sums);
    }
    free(sim.costs);
    free(sim.values);
    free(sim.is_done);
    workers_tree_free(tree);
    return sim.fails ? 0 : over;
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    long runs = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;
    double worst = 0;
    for (long i = 0; i < runs; i++, seed++)
        worst = fmax(worst, run());
    printf(
        "model: %ld runs, each block accepted once, each sum as of one rank; at most %.3f s above the ideal\n",
        runs, worst);
    free(sim.heap);
    free(sim.firsts);
    free(sim.counts);
    return 0;
}
