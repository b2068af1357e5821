/* What each algorithm costs, computed from what the ways between sites and those inside a site cost. It knows
 * no MPI, so that `causeway collectives explain` computes the very same (explain.c). Whole numbers only:
 * every rank must come to the same answer, whatever its processor. */
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
    /* The MPI's own. */
    NATIVE,
    /* One rank of each site, its leader, exchanges what all of them have. */
    LEADERS,
    /* The same, cut in segments. */
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

/* Microseconds, and bytes per microsecond. */
struct costs {
    /* Of the longest way between two sites, there and back, and of the slowest. */
    int64_t rtt, rate;
    /* The same inside a site. */
    int64_t lan_rtt, lan_rate;
    /* What each message between sites costs on top: those of a site go one after the other through its
     * gateway. */
    int64_t message;
    /* What a message is cut into, bytes. */
    int64_t segment;
};

extern const struct costs costs_default;

struct layout {
    int ranks, sites;
    /* Ranks of the largest site. */
    int largest;
    /* Each site's ranks follow each other. */
    int in_order;
    /* The operation of a reduction commutes. */
    int commutes;
    /* Reductions only in the order of ranks: the same bits for every placement. */
    int by_rank;
};

/* More than this is left to the MPI: counts of bytes are ints there. */
#define MAX_BYTES (1 << 30)

/* Whether an operation has an algorithm, in whatever case. */
int model_has(enum operation operation, enum algorithm algorithm);

/* Whether it gives the right result here. */
int model_fits(const struct layout *layout, enum operation operation, enum algorithm algorithm,
               int64_t bytes);

/* Nanoseconds; of the MPI's own what a flat algorithm takes each of whose steps waits for a way between
 * sites. `bytes`: one rank's part; of a reduced vector the whole. */
int64_t model_cost(const struct costs *costs, const struct layout *layout, enum operation operation,
                   enum algorithm algorithm, int64_t bytes);

/* In pieces of how many bytes an allreduce by several leaders goes. */
int64_t model_multi_leader_segment(int64_t segment, int ranks, int64_t bytes);

/* The cheapest that fits. The MPI's own is a reference and no candidate, but for where nothing else fits:
 * what it costs depends on its version. Of a reduction no candidate's advantage depends on the ways between
 * sites, which are measured anew in each run: the same run twice gives the same bits. */
enum algorithm model_cheapest(const struct costs *costs, const struct layout *layout,
                              enum operation operation, int64_t bytes);

#endif
