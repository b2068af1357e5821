#include "schedule.h"

#include "memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A chunk is two messages at its boss: with all children busy, these take at most a tenth of its time. */
#define MESSAGES_SHARE 10
/* A chunk lasts at most so many times the least, so that a rank whose speed has changed does not hold back
 * the others for long. */
#define LONGEST 32
/* Half of what is left is given out in one round, as in factoring (Hummel, Schonberg, Flynn 1992): the other
 * half makes up for what was wrongly expected. Everybody has two chunks, one to compute and one to come. */
#define SHARE_OF_ROUND (2 * 2)
/* A chunk is at most so many times the one before: first speeds are those of few items, and may be wrong. */
#define GROWTH 4
/* The same while no speed is known. */
#define FIRST_GROWTH 2
/* A chunk that failed waits so long for another child before the same may try again. */
#define AVOID_SECONDS 1.0
/* Who is idle is considered for copies so often; looking takes a pass over all units. */
#define COPY_LOOK_SECONDS 0.001

struct child {
    struct workers_child link;
    int asks, is_lost;
    /* 0 until measured. */
    double rate;
    int64_t last_given;
    /* When it last completed something. */
    double heard;
    /* Blocks that it has before the unit that is looked at; used by `find_copy` alone. */
    int64_t queued;
    double begun;
};

struct segment {
    int64_t grant, first, count;
    int attempts;
    /* The child that it failed at, and when; -1. */
    int avoid;
    double since;
};

struct unit {
    int64_t number, grant, first, count;
    int attempts, holders;
    /* Used by `find_copy` alone: when the first of its holders is expected to have done it. */
    double remaining;
    int is_own;
};

struct holding {
    int child;
    int64_t unit, count;
    double given;
};

struct grant {
    int64_t number, left;
};

struct workers_schedule {
    struct child *children;
    int count, turn, attempts, is_asked;
    double deadline, message;
    int64_t pool_blocks, last_grant, next_unit, retries, copies;
    double next_look;
    /* In the order in which they are given out. */
    struct segment *pool;
    size_t segments, segments_room;
    /* By number. */
    struct unit *units;
    size_t unit_count, units_room;
    /* By time. */
    struct holding *holdings;
    size_t holding_count, holdings_room;
    struct grant *grants;
    size_t grant_count, grants_room;
};

struct workers_schedule *workers_schedule_new(const struct workers_child *children, int count, int attempts,
                                              double deadline_seconds, double message_seconds)
{
    struct workers_schedule *s = workers_new(sizeof *s);
    s->children = workers_new(count * sizeof *s->children);
    s->count = count;
    for (int i = 0; i < count; i++)
        s->children[i].link = children[i];
    s->attempts = attempts;
    s->deadline = deadline_seconds;
    s->message = message_seconds;
    s->last_grant = 1;
    return s;
}

void workers_schedule_free(struct workers_schedule *s)
{
    if (!s)
        return;
    free(s->children);
    free(s->pool);
    free(s->units);
    free(s->holdings);
    free(s->grants);
    free(s);
}

/* Puts a segment before all others, or behind them. */
static void put(struct workers_schedule *s, struct segment segment, int in_front)
{
    s->pool = workers_grown(s->pool, s->segments, &s->segments_room, sizeof *s->pool);
    size_t at = in_front ? 0 : s->segments;
    memmove(s->pool + at + 1, s->pool + at, (s->segments - at) * sizeof *s->pool);
    s->pool[at] = segment;
    s->segments++;
    s->pool_blocks += segment.count;
}

static void drop_segment(struct workers_schedule *s, size_t at)
{
    s->pool_blocks -= s->pool[at].count;
    memmove(s->pool + at, s->pool + at + 1, (--s->segments - at) * sizeof *s->pool);
}

static struct unit *find_unit(const struct workers_schedule *s, int64_t number)
{
    size_t low = 0, high = s->unit_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->units[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->unit_count && s->units[low].number == number ? s->units + low : NULL;
}

static void drop_unit(struct workers_schedule *s, struct unit *unit)
{
    memmove(unit, unit + 1, (s->units + --s->unit_count - unit) * sizeof *unit);
}

static struct grant *find_grant(const struct workers_schedule *s, int64_t number)
{
    struct grant *grant = s->grants;
    while (grant->number != number)
        grant++;
    return grant;
}

/* Forgets a grant. Children may still have its units; what they say of these finds none. */
static void end_grant(struct workers_schedule *s, int64_t number)
{
    *find_grant(s, number) = s->grants[--s->grant_count];
    for (size_t i = s->segments; i-- > 0;)
        if (s->pool[i].grant == number)
            drop_segment(s, i);
    for (size_t i = s->unit_count; i-- > 0;)
        if (s->units[i].grant == number)
            drop_unit(s, s->units + i);
}

void workers_schedule_grant(struct workers_schedule *s, int64_t number, int64_t first, int64_t count)
{
    s->grants = workers_grown(s->grants, s->grant_count, &s->grants_room, sizeof *s->grants);
    s->grants[s->grant_count++] = (struct grant){number, count};
    put(s, (struct segment){.grant = number, .first = first, .count = count, .avoid = -1}, 0);
    s->last_grant = count;
    s->is_asked = 0;
}

int workers_schedule_wants_more(struct workers_schedule *s)
{
    if (s->is_asked || s->pool_blocks >= s->last_grant)
        return 0;
    return s->is_asked = 1;
}

void workers_schedule_ask(struct workers_schedule *s, int child) { s->children[child].asks++; }

void workers_schedule_rate(struct workers_schedule *s, int child, double rate)
{
    if (rate > 0)
        s->children[child].rate = rate;
}

/* Blocks a second of one rank whose speed is not known: as of the others; 0 where none is known. */
static double usual_rate(const struct workers_schedule *s)
{
    double rate = 0, weight = 0;
    for (int i = 0; i < s->count; i++)
        if (s->children[i].rate > 0 && !s->children[i].is_lost) {
            rate += s->children[i].rate;
            weight += s->children[i].link.weight;
        }
    return weight > 0 ? rate / weight : 0;
}

static double rate_of(const struct child *child, double usual)
{
    if (child->is_lost || !child->link.weight)
        return 0;
    return child->rate > 0 ? child->rate : usual * child->link.weight;
}

double workers_schedule_total_rate(const struct workers_schedule *s)
{
    double rate = 0, usual = usual_rate(s);
    for (int i = 0; i < s->count; i++)
        rate += rate_of(s->children + i, usual);
    return rate;
}

static int64_t chunk_of(const struct workers_schedule *s, const struct child *child)
{
    double usual = usual_rate(s), own = rate_of(child, usual > 0 ? usual : 1), all = 0;
    for (int i = 0; i < s->count; i++)
        all += rate_of(s->children + i, usual > 0 ? usual : 1);
    double guided = s->pool_blocks * own / (SHARE_OF_ROUND * all);
    if (child->rate > 0) {
        double least = workers_schedule_shortest(child->link.round_trip_seconds);
        least = fmax(least, 2 * MESSAGES_SHARE * s->message * s->count);
        guided = fmin(fmax(guided, own * least), own * least * LONGEST);
    }
    int64_t growth = child->rate > 0 ? GROWTH : FIRST_GROWTH;
    guided = fmin(guided, fmax(child->link.weight, (double)(growth * child->last_given)));
    return guided < 1 ? 1 : (int64_t)guided;
}

static void hold(struct workers_schedule *s, int child, struct unit *unit, double now,
                 struct workers_chunk *chunk)
{
    s->holdings = workers_grown(s->holdings, s->holding_count, &s->holdings_room, sizeof *s->holdings);
    s->holdings[s->holding_count++] = (struct holding){child, unit->number, unit->count, now};
    unit->holders++;
    s->children[child].asks--;
    s->children[child].last_given = unit->count;
    *chunk = (struct workers_chunk){child, unit->number, unit->first, unit->count, unit->holders > 1};
}

static int others_compute(const struct workers_schedule *s, int child)
{
    for (int i = 0; i < s->count; i++)
        if (i != child && s->children[i].link.weight && !s->children[i].is_lost)
            return 1;
    return 0;
}

/* A chunk of the pool for a child. */
static int take(struct workers_schedule *s, int child, double now, struct workers_chunk *chunk)
{
    size_t at = 0;
    while (at < s->segments && s->pool[at].avoid == child && now < s->pool[at].since + AVOID_SECONDS &&
           others_compute(s, child))
        at++;
    if (at == s->segments)
        return 0;
    struct segment *from = s->pool + at;
    int64_t count = chunk_of(s, s->children + child);
    if (count > from->count)
        count = from->count;
    s->units = workers_grown(s->units, s->unit_count, &s->units_room, sizeof *s->units);
    struct unit *unit = s->units + s->unit_count++;
    *unit = (struct unit){.number = s->next_unit++,
                          .grant = from->grant,
                          .first = from->first,
                          .count = count,
                          .attempts = from->attempts};
    from->first += count;
    from->count -= count;
    s->pool_blocks -= count;
    if (!from->count)
        drop_segment(s, at);
    hold(s, child, unit, now, chunk);
    return 1;
}

/* How long a holding is still expected to take. Who is overdue is expected to take as long again as it is
 * overdue already. */
static double remaining(const struct workers_schedule *s, const struct holding *holding, double usual,
                        double now)
{
    const struct child *child = s->children + holding->child;
    if (s->deadline > 0 && now > holding->given + s->deadline)
        return INFINITY;
    double rate = rate_of(child, usual);
    if (rate <= 0)
        return 0;
    double expected = child->link.round_trip_seconds + child->queued / rate;
    return fabs(expected - (now - fmax(child->heard, child->begun)));
}

/* Notes for each unit when the first of its holders will have done it, and whether the child has it. */
static void look_at_holdings(struct workers_schedule *s, int asking, double usual, double now)
{
    for (size_t i = 0; i < s->unit_count; i++) {
        s->units[i].remaining = INFINITY;
        s->units[i].is_own = 0;
    }
    for (int i = 0; i < s->count; i++)
        s->children[i].queued = 0;
    for (size_t i = 0; i < s->holding_count; i++) {
        struct holding *holding = s->holdings + i;
        struct child *child = s->children + holding->child;
        if (!child->queued)
            child->begun = holding->given;
        child->queued += holding->count;
        struct unit *unit = find_unit(s, holding->unit);
        if (!unit)
            continue;
        unit->remaining = fmin(unit->remaining, remaining(s, holding, usual, now));
        unit->is_own |= holding->child == asking;
    }
}

/* The pool is dry and a child is idle: it gets the unit that would end last, if it expects to be faster. */
static int find_copy(struct workers_schedule *s, int asking, double now, struct workers_chunk *chunk)
{
    double usual = usual_rate(s), rate = rate_of(s->children + asking, usual);
    look_at_holdings(s, asking, usual, now);
    struct unit *last = NULL;
    for (size_t i = 0; i < s->unit_count; i++) {
        struct unit *unit = s->units + i;
        double needed = s->children[asking].link.round_trip_seconds + (rate > 0 ? unit->count / rate : 0);
        if (!unit->is_own && unit->remaining > needed && (!last || unit->remaining > last->remaining))
            last = unit;
    }
    if (!last)
        return 0;
    hold(s, asking, last, now, chunk);
    s->copies++;
    return 1;
}

int workers_schedule_next(struct workers_schedule *s, double now, struct workers_chunk *chunk)
{
    int may_copy = now >= s->next_look, asking = 0;
    for (int i = 0; i < s->count; i++) {
        int child = (s->turn + i) % s->count;
        if (s->children[child].asks <= 0 || s->children[child].is_lost)
            continue;
        asking = 1;
        if (take(s, child, now, chunk) || (may_copy && !s->segments && find_copy(s, child, now, chunk))) {
            s->turn = (child + 1) % s->count;
            return 1;
        }
    }
    if (asking && may_copy)
        s->next_look = now + COPY_LOOK_SECONDS;
    return 0;
}

/* The unit that a child has done with; NULL where it counts no more. */
static struct unit *let_go(struct workers_schedule *s, int child, int64_t number)
{
    for (size_t i = 0; i < s->holding_count; i++)
        if (s->holdings[i].child == child && s->holdings[i].unit == number) {
            memmove(s->holdings + i, s->holdings + i + 1, (--s->holding_count - i) * sizeof *s->holdings);
            struct unit *unit = find_unit(s, number);
            if (unit)
                unit->holders--;
            return unit;
        }
    return NULL;
}

struct workers_outcome workers_schedule_complete(struct workers_schedule *s, int child, int64_t number,
                                                 double now)
{
    struct unit *unit = let_go(s, child, number);
    s->children[child].heard = now;
    if (!unit)
        return (struct workers_outcome){0};
    struct workers_outcome outcome = {1, unit->grant, 0, unit->count};
    drop_unit(s, unit);
    struct grant *grant = find_grant(s, outcome.grant);
    grant->left -= outcome.blocks;
    outcome.ends_grant = !grant->left;
    if (outcome.ends_grant)
        end_grant(s, outcome.grant);
    return outcome;
}

/* A unit that nobody has goes back to the pool. */
static void put_back(struct workers_schedule *s, struct unit *unit, int avoid, double now)
{
    put(s, (struct segment){unit->grant, unit->first, unit->count, unit->attempts, avoid, now}, 1);
    drop_unit(s, unit);
}

struct workers_outcome workers_schedule_fail(struct workers_schedule *s, int child, int64_t number,
                                             double now)
{
    struct unit *unit = let_go(s, child, number);
    s->children[child].heard = now;
    if (!unit)
        return (struct workers_outcome){0};
    struct workers_outcome outcome = {1, unit->grant, 0, unit->count};
    s->retries++;
    unit->attempts++;
    if (unit->holders)
        return outcome;
    outcome.ends_grant = unit->attempts >= s->attempts;
    if (outcome.ends_grant)
        end_grant(s, outcome.grant);
    else
        put_back(s, unit, child, now);
    return outcome;
}

void workers_schedule_lose(struct workers_schedule *s, int child)
{
    s->children[child].is_lost = 1;
    for (size_t i = s->holding_count; i-- > 0;)
        if (s->holdings[i].child == child) {
            struct unit *unit = let_go(s, child, s->holdings[i].unit);
            if (unit && !unit->holders)
                put_back(s, unit, -1, 0);
        }
}

int64_t workers_schedule_retries(const struct workers_schedule *s) { return s->retries; }
int64_t workers_schedule_copies(const struct workers_schedule *s) { return s->copies; }
int workers_schedule_units(const struct workers_schedule *s) { return (int)s->unit_count; }

double workers_schedule_shortest(double round_trip_seconds) { return fmax(4 * round_trip_seconds, 0.002); }
