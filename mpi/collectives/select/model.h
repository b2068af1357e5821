/* Computes what each algorithm costs, from what the ways between sites and those inside a site cost. It knows
 * no MPI, so that `causeway collectives explain` computes the very same (explain.c). It uses whole numbers
 * only: every rank must come to the same answer, whatever its processor. */
#ifndef CAUSEWAY_MODEL_H
#define CAUSEWAY_MODEL_H

#include <stdint.h>

enum operation {
    OF_BARRIER,
    OF_BCAST,
    OF_REDUCE,
    OF_ALLREDUCE,
    OF_REDUCE_SCATTER,
    OF_GATHER,
    OF_SCATTER,
    OF_ALLGATHER,
    OF_ALLTOALL,
    OF_SCAN,
    OPERATIONS
};

enum algorithm {
    /* The MPI's own algorithm. */
    NATIVE,
    /* One rank of each site, its leader, exchanges what all of them have. */
    LEADERS,
    /* As LEADERS, cut in segments. */
    SEGMENTS,
    /* Several ranks carry in parallel. */
    MULTI_LEADER,
    /* Everybody sends to whom it concerns, at once. */
    DIRECT,
    /* Each rank puts part of it together for all sites, and hands that to everybody. */
    SPLIT,
    /* Everybody gets everything, and puts it together in the order of ranks. */
    GATHERED,
    /* Each rank puts one block together in the order of ranks. */
    BLOCKS,
    ALGORITHMS
};

extern const char *const operation_names[OPERATIONS];
extern const char *const algorithm_names[ALGORITHMS];

/* What ways cost. Times are in microseconds, rates in bytes per microsecond. */
struct costs {
    /* The round trip of the longest way between two sites, and the rate of the slowest. */
    int64_t rtt, rate;
    /* The same two inside a site. */
    int64_t lan_rtt, lan_rate;
    /* What each message between sites costs on top. Those of a site go one after the other through its
     * gateway. */
    int64_t message;
    /* Bytes of a segment. */
    int64_t segment;
};

extern const struct costs costs_default;

struct layout {
    int ranks, sites;
    /* How many ranks the largest site has. */
    int largest;
    /* True where each site's ranks follow each other. */
    int in_order;
    /* True where the operation of a reduction commutes. */
    int commutes;
    /* True where reductions must add up in the order of ranks: that gives the same bits for every
     * placement. */
    int by_rank;
};

/* Larger ones are left to the MPI, where counts of bytes are ints. */
#define MAX_BYTES (1 << 30)

/* Whether an operation has an algorithm at all. */
int model_has(enum operation operation, enum algorithm algorithm);

/* Whether an algorithm gives the right result here. */
int model_fits(const struct layout *layout, enum operation operation, enum algorithm algorithm,
               int64_t bytes);

/* Returns nanoseconds. Of the MPI's own it is what a flat algorithm takes, each of whose steps waits for a
 * way between sites. `bytes` is one rank's part; of a reduced vector it is the whole. */
int64_t model_cost(const struct costs *costs, const struct layout *layout, enum operation operation,
                   enum algorithm algorithm, int64_t bytes);

/* An allreduce by several leaders goes in pieces of so many bytes. */
int64_t model_multi_leader_segment(int64_t segment, int ranks, int64_t bytes);

/* Finds the cheapest that fits. The MPI's own is a reference: it is a candidate only where nothing else fits,
 * because its cost depends on its version. Among a reduction's candidates the choice does not depend on the
 * ways between sites, which each run measures anew: the same run twice gives the same bits. */
enum algorithm model_cheapest(const struct costs *costs, const struct layout *layout,
                              enum operation operation, int64_t bytes);

#endif
