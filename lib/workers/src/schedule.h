/* Who gets which chunk, how large, and who gets it again: the decisions of one rank for the ranks that it
 * serves, its children. It knows no MPI and no clock; the time comes with the calls, in seconds.
 *
 *     above: grants of blocks ──> pool ──> units, one for each chunk given out ──> children
 *                                  ^ a unit that failed comes back │
 *
 * Child 0 is the rank itself. A unit that one child has may be given to another too; the first that completes
 * it wins. README.md explains the rules. Invariants:
 * - every block of a live grant is in the pool or in one unit, or done;
 * - a unit lies in one grant, so a grant is done when its last unit is;
 * - there are at most as many units as chunks asked for, so memory does not grow with the items. */
#ifndef CAUSEWAY_WORKERS_SCHEDULE_H
#define CAUSEWAY_WORKERS_SCHEDULE_H

#include <stdint.h>

struct workers_child {
    /* Measured. */
    double round_trip_seconds;
    /* Ranks that compute, of the child and of those below it. */
    int weight;
};

struct workers_schedule;

/* `children` has `count`, of which the first is the rank itself. A unit may fail `attempts` times here.
 * `message_seconds` is what a message costs this rank. */
struct workers_schedule *workers_schedule_new(const struct workers_child *children, int count, int attempts,
                                              double deadline_seconds, double message_seconds);
void workers_schedule_free(struct workers_schedule *schedule);

/* Blocks from above; `grant` is a new number. */
void workers_schedule_grant(struct workers_schedule *schedule, int64_t grant, int64_t first, int64_t count);

/* Whether to ask above for one more grant now. It is true once for each grant to come. */
int workers_schedule_wants_more(struct workers_schedule *schedule);

/* A child wants one more chunk. */
void workers_schedule_ask(struct workers_schedule *schedule, int child);

/* Blocks of a child's, or of its whole subtree's, in a second. */
void workers_schedule_rate(struct workers_schedule *schedule, int child, double blocks_per_second);
double workers_schedule_total_rate(const struct workers_schedule *schedule);

struct workers_chunk {
    int child;
    /* The number of the unit; never used twice. */
    int64_t unit;
    int64_t first, count;
    int is_copy;
};

/* The next chunk to give out; 0 where there is none for anybody who asked. */
int workers_schedule_next(struct workers_schedule *schedule, double now, struct workers_chunk *chunk);

struct workers_outcome {
    /* The first to say so of that unit: its results count. Otherwise nothing below is set. */
    int is_first;
    int64_t grant;
    /* The grant has come to its end: all done, or, of a failure, given up. */
    int ends_grant;
    int64_t blocks;
};

struct workers_outcome workers_schedule_complete(struct workers_schedule *schedule, int child, int64_t unit,
                                                 double now);

/* The child could not do it. The unit comes back, or ends its grant where it has failed too often. */
struct workers_outcome workers_schedule_fail(struct workers_schedule *schedule, int child, int64_t unit,
                                             double now);

/* The child is gone; others do what it had. */
void workers_schedule_lose(struct workers_schedule *schedule, int child);

/* Numbers for tests and reports. */
int64_t workers_schedule_retries(const struct workers_schedule *schedule);
int64_t workers_schedule_copies(const struct workers_schedule *schedule);
int workers_schedule_units(const struct workers_schedule *schedule);

/* The seconds that the shortest chunk lasts: four round trips, so that the next one, which is asked for when
 * it begins, is there long before it ends; and 2 ms where there is hardly a round trip, so that messages cost
 * little beside items. */
double workers_schedule_shortest(double round_trip_seconds);

#endif
