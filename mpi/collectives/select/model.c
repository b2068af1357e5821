#include "collectives/select/model.h"

const char *const operation_names[OPERATIONS] = {
    [OF_BARRIER] = "barrier",
    [OF_BCAST] = "bcast",
    [OF_REDUCE] = "reduce",
    [OF_ALLREDUCE] = "allreduce",
    [OF_REDUCE_SCATTER] = "reduce_scatter",
    [OF_GATHER] = "gather",
    [OF_SCATTER] = "scatter",
    [OF_ALLGATHER] = "allgather",
    [OF_ALLTOALL] = "alltoall",
    [OF_SCAN] = "scan",
};

const char *const algorithm_names[ALGORITHMS] = {
    [NATIVE] = "native", [LEADERS] = "leaders", [SEGMENTS] = "segments", [MULTI_LEADER] = "multi-leader",
    [DIRECT] = "direct", [SPLIT] = "split",     [GATHERED] = "gathered", [BLOCKS] = "blocks",
};

/* The costs of a hop inside a site and of a message between sites were inferred from the sizes at which one
 * algorithm becomes faster than another on an emulated grid of 4+4 ranks: gather, scatter and allgather near
 * 8 kB per rank, for which these values give 5 to 10 kB; alltoall near 1 kB and reduce_scatter near 3 kB (1.4
 * and 2.8 kB); on 3+3+3 ranks near 2.5 and 7 kB (1.8 and 5.9 kB; results/collectives-small). Segment size:
 * with 64 to 256 kB, 1 MB takes the same time within 4 %. */
const struct costs costs_default = {
    .rtt = 10000, .rate = 125, .lan_rtt = 24, .lan_rate = 1250, .message = 16, .segment = 256 * 1024};

#define BIT(algorithm) (1 << (algorithm))
/* The algorithms that combine in the order of ranks. */
#define BY_RANK (BIT(GATHERED) | BIT(BLOCKS))

static const int has[OPERATIONS] = {
    [OF_BARRIER] = BIT(LEADERS),
    [OF_BCAST] = BIT(LEADERS) | BIT(SEGMENTS),
    [OF_REDUCE] = BIT(LEADERS) | BIT(SEGMENTS) | BY_RANK,
    [OF_ALLREDUCE] = BIT(LEADERS) | BIT(SEGMENTS) | BIT(MULTI_LEADER) | BIT(SPLIT) | BY_RANK,
    [OF_REDUCE_SCATTER] = BIT(LEADERS) | BIT(MULTI_LEADER) | BIT(BLOCKS),
    [OF_GATHER] = BIT(LEADERS) | BIT(DIRECT),
    [OF_SCATTER] = BIT(LEADERS) | BIT(DIRECT),
    [OF_ALLGATHER] = BIT(LEADERS) | BIT(MULTI_LEADER),
    [OF_ALLTOALL] = BIT(LEADERS) | BIT(DIRECT),
    [OF_SCAN] = BIT(LEADERS) | BIT(SEGMENTS) | BIT(DIRECT) | BY_RANK,
};

int model_has(enum operation operation, enum algorithm algorithm)
{
    return algorithm == NATIVE || (has[operation] & BIT(algorithm));
}

static int gathers(enum operation operation)
{
    return operation == OF_GATHER || operation == OF_SCATTER || operation == OF_ALLGATHER ||
           operation == OF_ALLTOALL;
}

int model_fits(const struct layout *layout, enum operation operation, enum algorithm algorithm, int64_t bytes)
{
    if (algorithm == NATIVE)
        return 1;
    if (!model_has(operation, algorithm) || bytes > MAX_BYTES)
        return 0;
    /* The data of all ranks, which one rank holds, must fit, too. */
    int all_fits = bytes * layout->ranks <= MAX_BYTES;
    if (BIT(algorithm) & BY_RANK)
        return algorithm == BLOCKS || all_fits;
    if (layout->sites < 2 || (layout->by_rank && has[operation] & BY_RANK))
        return 0;
    if (gathers(operation))
        return all_fits || algorithm == DIRECT;
    if (operation == OF_SCAN && algorithm == DIRECT)
        return layout->commutes;
    if (operation == OF_SCAN)
        return layout->in_order;
    return layout->commutes || layout->in_order;
}

/* The number of steps of a tree over `ranks` ranks. */
static int steps(int ranks)
{
    int count = 0;
    while (1LL << count < ranks)
        count++;
    return count;
}

/* The time in nanoseconds to transfer `bytes` bytes, `times` times. */
static int64_t carry(int64_t bytes, int64_t times, int64_t rate)
{
    return (int64_t)((__int128)bytes * times * 1000 / rate);
}

/* The latency of a message inside a site. */
static int64_t hop(const struct costs *costs) { return costs->lan_rtt * 500; }

/* A broadcast or a reduction inside the largest site: large messages pass every rank twice, whatever the
 * number of ranks. */
static int64_t tree(const struct costs *costs, const struct layout *layout, int64_t bytes)
{
    int count = steps(layout->largest);
    return count * hop(costs) + carry(bytes, count < 2 ? count : 2, costs->lan_rate);
}

/* Moves `bytes` bytes of each rank of a site to one of them, or back. */
static int64_t collect(const struct costs *costs, const struct layout *layout, int64_t bytes)
{
    return steps(layout->largest) * hop(costs) + carry(bytes, layout->largest - 1, costs->lan_rate);
}

/* The time for which crossings occupy a site: `bytes` * `times` bytes, and `messages` messages to each other
 * site. */
static int64_t crossing(const struct costs *costs, const struct layout *layout, int64_t bytes, int64_t times,
                        int64_t messages)
{
    return carry(bytes, times, costs->rate) + messages * (layout->sites - 1) * costs->message * 1000;
}

/* A reduce-scatter or an allgather inside the largest site: each rank sends and receives all but its own
 * part. */
static int64_t cost_of_spreading(const struct costs *costs, const struct layout *layout, int64_t bytes)
{
    int n = layout->largest;
    return steps(n) * hop(costs) + carry(bytes / n, n - 1, costs->lan_rate);
}

static int64_t latency(const struct costs *costs) { return costs->rtt * 500; }

static int64_t pieces_of(int64_t bytes, int64_t segment)
{
    return bytes > segment ? (bytes + segment - 1) / segment : 1;
}

/* The first segment passes every stage; each later one waits for the slowest stage. */
static int64_t stages(const struct costs *costs, int64_t pieces, int64_t here, int64_t there)
{
    return latency(costs) + here + there + (pieces - 1) * (here > there ? here : there);
}

/* `trees` is the number of stages inside a site, which share its ranks. */
static int64_t pipeline(const struct costs *costs, const struct layout *layout, int64_t bytes,
                        int64_t segment, int trees)
{
    int64_t pieces = pieces_of(bytes, segment), piece = bytes / pieces;
    return stages(costs, pieces, trees * tree(costs, layout, piece), crossing(costs, layout, piece, 1, 1));
}

/* Each rank of a site has a part of each piece, so large messages are cut into larger pieces, as long as
 * there are enough pieces to keep every stage busy. */
#define MULTI_LEADER_PIECES 8

int64_t model_multi_leader_segment(int64_t segment, int ranks, int64_t bytes)
{
    int64_t most = segment * ranks, wanted = bytes / MULTI_LEADER_PIECES;
    return wanted < segment ? segment : wanted < most ? wanted : most;
}

static int64_t cost_of_multi_leader_allreduce(const struct costs *costs, const struct layout *layout,
                                              int64_t bytes)
{
    int64_t pieces = pieces_of(bytes, model_multi_leader_segment(costs->segment, layout->largest, bytes)),
            piece = bytes / pieces, n = layout->largest;
    return stages(costs, pieces, 2 * cost_of_spreading(costs, layout, piece),
                  crossing(costs, layout, piece / n, n, n));
}

/* Each part goes to its owner, and from there to all ranks. */
static int64_t cost_of_split_allreduce(const struct costs *costs, const struct layout *layout, int64_t bytes)
{
    int n = layout->largest;
    return 2 * (latency(costs) + cost_of_spreading(costs, layout, bytes) +
                crossing(costs, layout, bytes / layout->ranks, n, n));
}

/* R/2, or R/2 for each step of a tree over all ranks that is not ordered by sites. */
static int64_t cost_of_flat(const struct costs *costs, const struct layout *layout, enum operation operation,
                            int64_t bytes)
{
    int count = steps(layout->ranks), n = layout->largest;
    switch (operation) {
    case OF_GATHER:
    case OF_SCATTER:
        return latency(costs) + crossing(costs, layout, bytes, n, n);
    case OF_ALLTOALL:
        return latency(costs) + crossing(costs, layout, bytes, (int64_t)n * n, (int64_t)n * n);
    case OF_ALLGATHER:
        return count * latency(costs) + crossing(costs, layout, bytes, layout->ranks, count * n);
    case OF_REDUCE_SCATTER:
        return count * latency(costs) + crossing(costs, layout, bytes, n, count * n);
    case OF_SCAN:
    case OF_ALLREDUCE:
        return count * latency(costs) + crossing(costs, layout, bytes, n, count * n);
    default:
        return count * (latency(costs) + crossing(costs, layout, bytes, 1, 1));
    }
}

static int64_t cost_of_reduce_scatter(const struct costs *costs, const struct layout *layout,
                                      enum algorithm algorithm, int64_t bytes)
{
    int n = layout->largest, others = layout->ranks - n;
    int64_t part = bytes / layout->ranks;
    if (algorithm == LEADERS)
        return latency(costs) + tree(costs, layout, bytes) + crossing(costs, layout, part, n, 1) +
               collect(costs, layout, part);
    /* Each rank sums segments for ranks of other sites, one after the other. What arrives is added to the own
     * site's sum, which is computed meanwhile. */
    int64_t pieces = pieces_of(part, costs->segment), rounds = (others + n - 1) / n * pieces,
            step = n > 1 ? hop(costs) : 0;
    return latency(costs) + rounds * (2 * step + carry(part / pieces, n - 1, costs->lan_rate)) +
           crossing(costs, layout, part, n, n) + step;
}

static int64_t cost_of_allgather(const struct costs *costs, const struct layout *layout,
                                 enum algorithm algorithm, int64_t bytes)
{
    int n = layout->largest, handed_on = layout->ranks * (n - 1) / n;
    if (algorithm != MULTI_LEADER)
        return latency(costs) + collect(costs, layout, bytes) + crossing(costs, layout, bytes, n, 1) +
               tree(costs, layout, bytes * layout->ranks);
    /* Each part reaches each rank in messages of its own; segments from other sites are forwarded as they
     * arrive. */
    int64_t last = bytes < costs->segment ? bytes : costs->segment;
    return latency(costs) + crossing(costs, layout, bytes, n, n) + handed_on * hop(costs) +
           carry(last, n - 1, costs->lan_rate);
}

/* The exchange of blocks, combining one block, and what is done with the result. */
static int64_t cost_of_blocks(const struct costs *costs, const struct layout *layout,
                              enum operation operation, int64_t bytes)
{
    int64_t n = layout->largest, part = bytes / layout->ranks;
    int64_t exchange = latency(costs) + crossing(costs, layout, part, n * n, n * n),
            add = carry(bytes, 1, costs->lan_rate);
    switch (operation) {
    case OF_REDUCE_SCATTER:
        return exchange + add;
    case OF_REDUCE:
        return exchange + add + latency(costs) + crossing(costs, layout, part, n, n);
    case OF_ALLREDUCE:
        return exchange + add + cost_of_allgather(costs, layout, MULTI_LEADER, part);
    default:
        return 2 * exchange + add;
    }
}

/* All data goes to every rank, or to the root, and is combined there. */
static int64_t cost_of_gathered(const struct costs *costs, const struct layout *layout,
                                enum operation operation, int64_t bytes)
{
    int64_t add = carry(bytes, layout->ranks, costs->lan_rate);
    if (operation == OF_REDUCE)
        return latency(costs) + collect(costs, layout, bytes) +
               crossing(costs, layout, bytes, layout->largest, 1) + add;
    return cost_of_allgather(costs, layout, LEADERS, bytes) + add;
}

int64_t model_cost(const struct costs *costs, const struct layout *layout, enum operation operation,
                   enum algorithm algorithm, int64_t bytes)
{
    int64_t n = layout->largest;
    /* On one site, all messages use the network inside it. */
    struct costs inside = *costs;
    inside.rtt = costs->lan_rtt, inside.rate = costs->lan_rate;
    costs = layout->sites < 2 ? &inside : costs;
    if (algorithm == NATIVE)
        return cost_of_flat(costs, layout, operation, bytes);
    if (algorithm == GATHERED)
        return cost_of_gathered(costs, layout, operation, bytes);
    if (algorithm == BLOCKS)
        return cost_of_blocks(costs, layout, operation, bytes);
    switch (operation) {
    case OF_BARRIER:
        return pipeline(costs, layout, 0, 1, 2);
    case OF_BCAST:
    case OF_REDUCE:
        return pipeline(costs, layout, bytes, algorithm == SEGMENTS ? costs->segment : bytes, 1);
    case OF_REDUCE_SCATTER:
        return cost_of_reduce_scatter(costs, layout, algorithm, bytes);
    case OF_GATHER:
    case OF_SCATTER:
        return latency(costs) + (algorithm == LEADERS
                                     ? collect(costs, layout, bytes) + crossing(costs, layout, bytes, n, 1)
                                     : crossing(costs, layout, bytes, n, n));
    case OF_ALLTOALL:
        /* The leader also reorders what it sends and what it receives: each is read and written once more. */
        if (algorithm == LEADERS)
            return latency(costs) + 2 * collect(costs, layout, bytes * layout->ranks) +
                   carry(bytes * layout->ranks, 4 * n, costs->lan_rate) +
                   crossing(costs, layout, bytes, n * n, 1);
        return latency(costs) + crossing(costs, layout, bytes, n * n, n * n);
    case OF_ALLGATHER:
        return cost_of_allgather(costs, layout, algorithm, bytes);
    default:
        if (operation == OF_ALLREDUCE && algorithm == MULTI_LEADER)
            return cost_of_multi_leader_allreduce(costs, layout, bytes);
        if (operation == OF_ALLREDUCE && algorithm == SPLIT)
            return cost_of_split_allreduce(costs, layout, bytes);
        if (operation == OF_SCAN && algorithm == DIRECT)
            return latency(costs) + tree(costs, layout, bytes) + crossing(costs, layout, bytes, n, n);
        return pipeline(costs, layout, bytes, algorithm == SEGMENTS ? costs->segment : bytes, 2);
    }
}

/* With segments, one rank receives the message twice inside its site and once from each other site; with
 * several leaders, no rank receives more than its part. Over two sites, several leaders took less time,
 * except for 1 MB with Open MPI, where they took a tenth more (results/collectives-algorithms). Over more
 * sites they took about the same, and they never use a path through a third site where a direct link is slow.
 * There they are chosen only if a site's network has less than three times the usual 1 Gbit/s between sites,
 * so that receiving does not overlap with the crossing. */
#define SLOW_LAN 375

/* Over three or more sites, split waits for two crossings, but less data crosses: 1 MB took 0.55 to 0.73
 * times as long as with segments, 4 MB 0.6 to 0.7 times, and 512 kB 0.65 to 0.95 times, with two cores doing
 * all the work (results/collectives-algorithms). If only the links between sites count, of 10 ms and 1
 * Gbit/s, split becomes faster near 1 MB. */
#define SPLIT_SEGMENTS 4

#define LARGE_ALLREDUCE (BIT(SEGMENTS) | BIT(MULTI_LEADER) | BIT(SPLIT))

/* The algorithm for large messages among those that combine by site. The bounds are fixed: the links between
 * sites, which each run measures anew, must not decide between algorithms that round differently. */
static enum algorithm algorithm_of_large_allreduce(const struct costs *costs, const struct layout *layout,
                                                   int64_t bytes)
{
    if (layout->sites > 2 && bytes / SPLIT_SEGMENTS >= costs->segment)
        return SPLIT;
    return layout->sites == 2 || costs->lan_rate < SLOW_LAN ? MULTI_LEADER : SEGMENTS;
}

/* Cutting into segments pays off from the second segment on; below that both algorithms are the same.
 * Algorithms that combine by rank, and a scan for ranks in any order, are not compared with algorithms that
 * cross once for each site: the outcome would depend on the links between sites. */
static int is_candidate(const struct costs *costs, const struct layout *layout, enum operation operation,
                        enum algorithm algorithm, int64_t bytes)
{
    int is_cut = model_has(operation, SEGMENTS) && (algorithm == LEADERS || algorithm == SEGMENTS);
    if (is_cut && (algorithm == SEGMENTS) != (bytes >= costs->segment))
        return 0;
    if (operation == OF_ALLREDUCE && BIT(algorithm) & LARGE_ALLREDUCE &&
        (bytes < costs->segment || algorithm != algorithm_of_large_allreduce(costs, layout, bytes)))
        return 0;
    if (operation == OF_SCAN && algorithm == DIRECT && layout->in_order)
        return 0;
    if (BIT(algorithm) & BY_RANK && !layout->by_rank && (layout->in_order || layout->commutes))
        return 0;
    return model_fits(layout, operation, algorithm, bytes);
}

enum algorithm model_cheapest(const struct costs *costs, const struct layout *layout,
                              enum operation operation, int64_t bytes)
{
    enum algorithm best = NATIVE;
    int64_t least = 0;
    for (enum algorithm algorithm = LEADERS; algorithm < ALGORITHMS; algorithm++) {
        if (!is_candidate(costs, layout, operation, algorithm, bytes))
            continue;
        int64_t cost = model_cost(costs, layout, operation, algorithm, bytes);
        /* If two cost the same, the later one wins: it copies less. */
        if (best == NATIVE || cost <= least) {
            best = algorithm;
            least = cost;
        }
    }
    return best;
}
