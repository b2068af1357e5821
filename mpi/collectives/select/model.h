/* Computes the cost of each algorithm from the costs of the links between sites and inside a site. This file
 * does not depend on MPI, so `causeway collectives explain` computes exactly the same (explain.c). It uses
 * only integers: every rank must compute the same result, whatever its processor. */
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
    /* One rank of each site, its leader, exchanges the data of all its ranks. */
    LEADERS,
    /* Like LEADERS, but cut into segments. */
    SEGMENTS,
    /* Several ranks of a site transfer in parallel. */
    MULTI_LEADER,
    /* Every rank sends to all ranks concerned, at once. */
    DIRECT,
    /* Each rank combines one part from all sites, and sends it to all ranks. */
    SPLIT,
    /* Every rank, or the root, receives everything, and combines it in the order of ranks. */
    GATHERED,
    /* Each rank combines one block in the order of ranks. */
    BLOCKS,
    ALGORITHMS
};

extern const char *const operation_names[OPERATIONS];
extern const char *const algorithm_names[ALGORITHMS];

/* The costs of links. Times are in microseconds, rates in bytes per microsecond. */
struct costs {
    /* The round-trip time of the longest link between two sites, and the rate of the slowest. */
    int64_t rtt, rate;
    /* The same two inside a site. */
    int64_t lan_rtt, lan_rate;
    /* The extra cost of each message between sites. The messages of a site pass through its gateway one after
     * the other. */
    int64_t message;
    /* The size of a segment in bytes. */
    int64_t segment;
};

extern const struct costs costs_default;

struct layout {
    int ranks, sites;
    /* The number of ranks of the largest site. */
    int largest;
    /* True if each site's ranks are consecutive. */
    int in_order;
    /* True if the operation of a reduction commutes. */
    int commutes;
    /* True if reductions must combine in the order of ranks, which gives the same bits for every
     * placement. */
    int by_rank;
};

/* Larger operations are left to the MPI if they count bytes in an int. */
#define MAX_BYTES (1 << 30)

/* Whether an operation has an algorithm at all. */
int model_has(enum operation operation, enum algorithm algorithm);

/* Whether an algorithm gives the right result here. */
int model_fits(const struct layout *layout, enum operation operation, enum algorithm algorithm,
               int64_t bytes);

/* Returns nanoseconds. For NATIVE it is the cost of a flat algorithm, in which each step waits for a crossing
 * between sites. `bytes` is the size of one rank's part, or of the whole vector in a reduction. */
int64_t model_cost(const struct costs *costs, const struct layout *layout, enum operation operation,
                   enum algorithm algorithm, int64_t bytes);

/* The size in bytes of the pieces into which a multi-leader allreduce cuts a message. */
int64_t model_multi_leader_segment(int64_t segment, int ranks, int64_t bytes);

/* Finds the cheapest algorithm that fits. NATIVE is the choice only if nothing else fits, because the cost of
 * the MPI's own algorithm depends on its version. Among the candidates for a reduction, the choice does not
 * depend on the links between sites, which each run measures anew: the same run twice gives the same bits. */
enum algorithm model_cheapest(const struct costs *costs, const struct layout *layout,
                              enum operation operation, int64_t bytes);

#endif
