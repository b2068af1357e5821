#include "node.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Messages are looked at so often between items: it costs about 2 us. */
#define LOOK_SECONDS 100e-6
/* A boss that serves more ranks than this does not compute: its own work would be below a sixteenth of
 * theirs, and long items would keep them waiting. */
#define COMPUTING_BOSS_CHILDREN 16
/* Who has looked so often for nothing sleeps between looks, so that ranks that share a core let each other
 * run. */
#define LOOKS_BEFORE_SLEEP 200
#define SLEEP_NANOSECONDS 50000

int workers_node_children(const struct workers_tree *tree, int rank, int *children)
{
    int count = 0;
    for (int other = 0; other < tree->ranks; other++)
        if (tree->parents[other] == rank) {
            if (children)
                children[count] = other;
            count++;
        }
    return count;
}

static int computes(const struct workers_tree *tree, const struct workers_settings *settings, int rank)
{
    int children = workers_node_children(tree, rank, NULL);
    if (!children || settings->boss == CAUSEWAY_WORKERS_BOSS_COMPUTES)
        return 1;
    return settings->boss == CAUSEWAY_WORKERS_BOSS_AUTO && children <= COMPUTING_BOSS_CHILDREN;
}

/* Ranks that compute, of a rank and of those below it. */
static int weight_of(const struct workers_tree *tree, const struct workers_settings *settings, int rank)
{
    int weight = computes(tree, settings, rank);
    for (int other = rank + 1; other < tree->ranks; other++)
        if (tree->parents[other] == rank)
            weight += weight_of(tree, settings, other);
    return weight;
}

static void open_schedule(struct workers_node *node, double message_seconds, const double *round_trips)
{
    struct workers_child *children = workers_new(sizeof *children * (node->children + 1));
    children[0].weight = node->computes;
    for (int i = 0; i < node->children; i++) {
        children[i + 1].round_trip_seconds = round_trips[i];
        children[i + 1].weight = weight_of(node->tree, node->settings, node->ranks[i]);
    }
    /* A rank with nobody below it leaves it to its boss to try again elsewhere. */
    int attempts = node->children || node->mail.parent < 0 ? node->settings->attempts : 1;
    node->schedule = workers_schedule_new(children, node->children + 1, attempts,
                                          node->settings->deadline_seconds, message_seconds);
    free(children);
}

void workers_node_open(struct workers_node *node, MPI_Comm comm, struct causeway_workers *job,
                       const struct workers_settings *settings, const struct workers_tree *tree,
                       double message_seconds, const double *round_trips)
{
    memset(node, 0, sizeof *node);
    MPI_Comm_rank(comm, &node->rank);
    node->comm = comm;
    node->job = job;
    node->settings = settings;
    node->tree = tree;
    node->blocks = (job->items + settings->block_items - 1) / settings->block_items;
    node->ranks = workers_new(sizeof(int) * tree->ranks);
    node->child_of = workers_new(sizeof(int) * tree->ranks);
    node->is_gone = workers_new(tree->ranks + 1);
    node->children = workers_node_children(tree, node->rank, node->ranks);
    for (int i = 0; i < node->children; i++)
        node->child_of[node->ranks[i]] = i + 1;
    node->computes = computes(tree, settings, node->rank);
    workers_mail_open(&node->mail, comm, tree->parents[node->rank], node->children, settings->piece_bytes);
    open_schedule(node, message_seconds, round_trips);
    workers_hand_open(&node->hand, job, settings->block_items);
    node->sums = (struct workers_sums){
        .blocks = node->blocks, .bytes = job->sum_bytes, .combine = job->combine, .context = job->context};
    if (node->rank == 0) {
        workers_sink_open(&node->sink, job, settings->block_items);
        workers_progress_open(&node->progress, tree, settings->progress, job->items, settings->block_items,
                              MPI_Wtime());
        workers_schedule_grant(node->schedule, 0, 0, node->blocks);
    }
}

static void stop(struct workers_node *node, int status)
{
    node->is_stopped = 1;
    node->status = status;
}

/* A grant is done: rank 0 has all, others tell their boss. */
static void end_grant(struct workers_node *node, int64_t grant)
{
    const struct workers_sum *sum;
    size_t at = 0, bytes = (size_t)node->job->sum_bytes, padded = (bytes + 7) / 8 * 8;
    int64_t sums = 0;
    if (node->rank == 0) {
        if (bytes && node->job->sum)
            memcpy(node->job->sum, workers_sums_of(&node->sums, grant, &at)->data, bytes);
        stop(node, CAUSEWAY_WORKERS_OK);
        return;
    }
    while (workers_sums_of(&node->sums, grant, &at))
        sums++;
    char *record = workers_piece_add(&node->mail.open, RECORD_COMPLETE,
                                     2 * sizeof(int64_t) + sums * (2 * sizeof(int64_t) + padded));
    memcpy(record, (int64_t[]){grant, sums}, 2 * sizeof(int64_t));
    record += 2 * sizeof(int64_t);
    for (at = 0; (sum = workers_sums_of(&node->sums, grant, &at)); record += 2 * sizeof(int64_t) + padded) {
        memcpy(record, (int64_t[]){sum->level, sum->index}, 2 * sizeof(int64_t));
        memcpy(record + 2 * sizeof(int64_t), sum->data, bytes);
        memset(record + 2 * sizeof(int64_t) + bytes, 0, padded - bytes);
    }
    workers_sums_drop(&node->sums, grant);
}

/* A child was the first to complete a unit. */
static void on_outcome(struct workers_node *node, int child, const struct workers_outcome *outcome)
{
    if (node->rank == 0)
        workers_progress_done(&node->progress, child ? node->ranks[child - 1] : 0, outcome->blocks);
    if (outcome->ends_grant)
        end_grant(node, outcome->grant);
}

static void on_complete(struct workers_node *node, int child, const char *record, double now)
{
    int64_t head[2], place[2];
    size_t padded = ((size_t)node->job->sum_bytes + 7) / 8 * 8;
    memcpy(head, record, sizeof head);
    struct workers_outcome outcome = workers_schedule_complete(node->schedule, child, head[0], now);
    if (!outcome.is_first)
        return;
    record += sizeof head;
    for (int64_t i = 0; i < head[1]; i++, record += sizeof place + padded) {
        memcpy(place, record, sizeof place);
        workers_sums_add(&node->sums, outcome.grant, place[0], place[1], record + sizeof place);
    }
    on_outcome(node, child, &outcome);
}

static void on_failed(struct workers_node *node, int child, int64_t unit, struct workers_failure failure,
                      double now)
{
    struct workers_outcome outcome = workers_schedule_fail(node->schedule, child, unit, now);
    if (!outcome.is_first || !outcome.ends_grant)
        return;
    workers_sums_drop(&node->sums, outcome.grant);
    node->failure = failure;
    if (node->rank == 0) {
        stop(node, CAUSEWAY_WORKERS_FAILED);
        return;
    }
    char *record = workers_piece_add(&node->mail.open, RECORD_FAILED, sizeof outcome.grant + sizeof failure);
    memcpy(record, &outcome.grant, sizeof outcome.grant);
    memcpy(record + sizeof outcome.grant, &failure, sizeof failure);
}

static void on_results(struct workers_node *node, const char *record, size_t bytes)
{
    int64_t block;
    memcpy(&block, record, sizeof block);
    if (node->rank == 0)
        workers_sink_take(&node->sink, block, record + sizeof block);
    else
        memcpy(workers_piece_add(&node->mail.open, RECORD_RESULTS, bytes), record, bytes);
}

static void on_record(struct workers_node *node, int child, const struct workers_record *record, double now)
{
    const char *payload = (const char *)(record + 1);
    int64_t number = 0;
    struct workers_failure failure;
    if (record->bytes >= (int64_t)sizeof number)
        memcpy(&number, payload, sizeof number);
    if (record->kind == RECORD_BYE) {
        node->byes++;
        node->silent += number;
        node->is_gone[child] = 1;
    }
    /* Behind the end nothing else counts. */
    if (node->is_stopped)
        return;
    switch (record->kind) {
    case RECORD_RESULTS:
        on_results(node, payload, record->bytes);
        break;
    case RECORD_COMPLETE:
        on_complete(node, child, payload, now);
        break;
    case RECORD_FAILED:
        memcpy(&failure, payload + sizeof number, sizeof failure);
        on_failed(node, child, number, failure, now);
        break;
    case RECORD_ASK:
        workers_schedule_ask(node->schedule, child);
        break;
    }
}

/* The MPI has an error with a rank below, which is then without work; with others the run ends. */
static void on_error(struct workers_node *node, int rank)
{
    int child = rank >= 0 ? node->child_of[rank] : 0;
    if (!child) {
        stop(node, CAUSEWAY_WORKERS_MPI);
        return;
    }
    if (node->is_gone[child])
        return;
    node->is_gone[child] = 1;
    node->byes++;
    node->silent++;
    workers_schedule_lose(node->schedule, child);
}

static int is_far(const struct workers_node *node, int rank)
{
    return node->tree->levels && node->tree->colors[rank] != node->tree->colors[node->rank];
}

/* Reports of those below, as long as there is room for their results. Returns how many. */
static int take_reports(struct workers_node *node, double now)
{
    int taken = 0;
    while (node->children && (node->is_stopped || workers_mail_has_room(&node->mail))) {
        const char *data = NULL;
        size_t bytes, at = 0;
        int source;
        if (workers_mail_take_report(&node->mail, node->ranks, node->is_gone, &source, &data, &bytes)) {
            on_error(node, source);
            break;
        }
        if (!bytes)
            break;
        struct workers_piece_head head;
        memcpy(&head, data, sizeof head);
        int child = node->child_of[source];
        node->messages_far += is_far(node, source);
        workers_schedule_rate(node->schedule, child, head.rate);
        const struct workers_record *record;
        while ((record = workers_piece_next(data, bytes, &at)))
            on_record(node, child, record, now);
        taken++;
    }
    return taken;
}

static int take_orders(struct workers_node *node)
{
    struct workers_order order;
    int is_there = 1, taken = 0;
    while (is_there && !node->is_stopped) {
        if (workers_mail_take_order(&node->mail, &order, &is_there)) {
            stop(node, CAUSEWAY_WORKERS_MPI);
            break;
        }
        if (!is_there)
            break;
        taken++;
        if (order.kind == ORDER_GRANT) {
            workers_schedule_grant(node->schedule, order.unit, order.first, order.count);
        } else {
            node->failure = order.failure;
            stop(node, (int)order.status);
        }
    }
    return taken;
}

static void order(struct workers_node *node, int child, const struct workers_order *order)
{
    int rank = node->ranks[child - 1];
    node->messages_far += is_far(node, rank);
    if (workers_mail_order(&node->mail, child - 1, rank, order))
        on_error(node, rank);
}

/* Gives chunks to all who asked, and asks above. */
static void hand_out(struct workers_node *node, double now)
{
    struct workers_chunk chunk;
    if (node->computes && !node->hand.is_busy && !node->is_asking) {
        node->is_asking = 1;
        workers_schedule_ask(node->schedule, 0);
    }
    while (workers_schedule_next(node->schedule, now, &chunk)) {
        if (!chunk.child) {
            node->is_asking = 0;
            workers_hand_begin(&node->hand, chunk.unit, chunk.first, chunk.count);
        } else {
            order(node, chunk.child,
                  &(struct workers_order){
                      .kind = ORDER_GRANT, .unit = chunk.unit, .first = chunk.first, .count = chunk.count});
        }
    }
    if (node->rank && workers_schedule_wants_more(node->schedule))
        workers_piece_add(&node->mail.open, RECORD_ASK, 0);
}

static void give_block(struct workers_node *node, int64_t block)
{
    size_t bytes = workers_hand_bytes(&node->hand, block);
    if (!bytes)
        return;
    if (node->rank == 0) {
        char *results = workers_new(bytes);
        workers_hand_results(&node->hand, block, results);
        workers_sink_take(&node->sink, block, results);
        free(results);
        return;
    }
    char *record = workers_piece_add(&node->mail.open, RECORD_RESULTS, sizeof block + bytes);
    memcpy(record, &block, sizeof block);
    workers_hand_results(&node->hand, block, record + sizeof block);
}

/* The rank's own unit is done: its sums go under the grant if it was the first. */
static void end_unit(struct workers_node *node, double now)
{
    int64_t unit = node->hand.unit;
    struct workers_outcome outcome = workers_schedule_complete(node->schedule, 0, unit, now);
    const struct workers_sum *sum;
    size_t at = 0;
    while (outcome.is_first && (sum = workers_sums_of(&node->hand.sums, unit, &at)))
        workers_sums_add(&node->sums, outcome.grant, sum->level, sum->index, sum->data);
    workers_sums_drop(&node->hand.sums, unit);
    if (outcome.is_first)
        on_outcome(node, 0, &outcome);
}

static int compute(struct workers_node *node)
{
    int64_t block = 0;
    struct workers_failure failure = {0};
    if (!node->hand.is_busy || node->is_stopped || !workers_mail_has_room(&node->mail))
        return 0;
    enum workers_step step = workers_hand_step(&node->hand, LOOK_SECONDS, &block, &failure);
    workers_schedule_rate(node->schedule, 0, workers_hand_rate(&node->hand));
    if (step == STEP_BLOCK || step == STEP_UNIT)
        give_block(node, block);
    if (step == STEP_UNIT)
        end_unit(node, MPI_Wtime());
    if (step == STEP_FAILED) {
        failure.rank = node->rank;
        workers_sums_drop(&node->hand.sums, node->hand.unit);
        on_failed(node, 0, node->hand.unit, failure, MPI_Wtime());
    }
    return 1;
}

/* Sleeps a little where nothing has happened for a while. */
static void rest(struct workers_node *node, int has_moved)
{
    node->idle = has_moved ? 0 : node->idle + 1;
    if (node->idle > LOOKS_BEFORE_SLEEP)
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NANOSECONDS}, NULL);
}

/* Whether time to wait for those who do not answer is over. A boss below is less patient, so that it can
 * still say so to the one above. */
static int is_over(const struct workers_node *node, double begun)
{
    double patience = node->settings->patience_seconds * (node->rank ? 0.5 : 1);
    return patience > 0 && MPI_Wtime() > begun + patience;
}

/* Tells those below that it is over, waits for their farewell, and bids the boss farewell. What they sent
 * before is taken and dropped, so that no message is left. */
static void farewell(struct workers_node *node)
{
    struct workers_order end = {.kind = ORDER_STOP, .status = node->status, .failure = node->failure};
    double begun = MPI_Wtime();
    int is_sent = 0;
    node->mail.open.bytes = node->mail.open.is_urgent = 0;
    for (int i = 0; i < node->children; i++)
        if (!node->is_gone[i + 1])
            order(node, i + 1, &end);
    while (node->byes < node->children && !is_over(node, begun))
        rest(node, take_reports(node, MPI_Wtime()));
    node->silent += node->children - node->byes;
    if (node->rank) {
        memcpy(workers_piece_add(&node->mail.open, RECORD_BYE, sizeof node->silent), &node->silent,
               sizeof node->silent);
        while (!workers_piece_is_empty(&node->mail.open) && !is_over(node, begun)) {
            if (workers_mail_flush(&node->mail, 0))
                break;
            rest(node, 0);
        }
    }
    while (!is_sent && !(node->silent || is_over(node, begun))) {
        if (workers_mail_is_sent(&node->mail, &is_sent))
            break;
        rest(node, is_sent);
    }
}

int workers_node_run(struct workers_node *node)
{
    while (!node->is_stopped) {
        double now = MPI_Wtime();
        int moved = take_orders(node) + take_reports(node, now);
        if (node->is_stopped)
            break;
        /* A chunk's end and the wish for the next then travel in one message. */
        moved += compute(node);
        if (node->is_stopped)
            break;
        hand_out(node, now);
        if (node->rank && workers_mail_flush(&node->mail, workers_schedule_total_rate(node->schedule)))
            stop(node, CAUSEWAY_WORKERS_MPI);
        if (node->rank == 0)
            workers_progress_show(&node->progress, now, 0);
        rest(node, moved);
    }
    farewell(node);
    if (node->rank == 0)
        workers_progress_show(&node->progress, MPI_Wtime(), 1);
    if (node->silent && node->status == CAUSEWAY_WORKERS_OK)
        node->status = CAUSEWAY_WORKERS_SILENT;
    return node->status;
}

void workers_node_close(struct workers_node *node)
{
    if (node->rank == 0) {
        workers_sink_close(&node->sink,
                           node->status == CAUSEWAY_WORKERS_OK || node->status == CAUSEWAY_WORKERS_SILENT);
        workers_progress_close(&node->progress);
    }
    workers_mail_close(&node->mail);
    workers_hand_close(&node->hand);
    workers_sums_free(&node->sums);
    workers_schedule_free(node->schedule);
    free(node->ranks);
    free(node->child_of);
    free(node->is_gone);
}
