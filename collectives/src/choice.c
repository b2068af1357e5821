#define _GNU_SOURCE
#include "choice.h"

#include "sites.h"

#include <stdlib.h>
#include <string.h>

/* More than this is left to the MPI: counts of bytes are ints there. */
#define MOST_BYTES (1 << 30)

/* A flit's time inside a site is what comes on top of the way between sites, and each costs the site's ranks a wake-up. */
#define FLIT_BYTES (256 * 1024)
#define MOST_AHEAD 64

/* From so many bytes of each rank on, what a site's ranks send is not gathered first: it takes longer than their messages save. */
#define DIRECT_BYTES (8 * 1024)

/* Scans of ranks in any order take everything everywhere where the operation does not commute. */
#define GATHERED_SCAN_BYTES (64 * 1024)

static const char *const operations[OPERATIONS] = {
    [OF_BARRIER] = "barrier",   [OF_BCAST] = "bcast",     [OF_REDUCE] = "reduce",
    [OF_ALLREDUCE] = "allreduce", [OF_REDUCE_SCATTER] = "reduce_scatter", [OF_GATHER] = "gather",
    [OF_SCATTER] = "scatter",   [OF_ALLGATHER] = "allgather", [OF_ALLTOALL] = "alltoall", [OF_SCAN] = "scan",
};

static struct settings {
    /* Of the longest way between two sites, microseconds, and of the slowest, bytes per microsecond. */
    int64_t round, rate;
    int64_t flit;
    /* Operations left to the MPI. */
    int native[OPERATIONS];
} settings = {.round = 10000, .rate = 125, .flit = FLIT_BYTES};

static int64_t number(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return otherwise;
    long long value = strtoll(text, &end, 10);
    return *end || value < 1 ? otherwise : value;
}

static int names(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length]))
            return 1;
    return 0;
}

void choice_learn(void)
{
    settings.round = number("CAUSEWAY_COLLECTIVES_ROUND_MICROSECONDS", settings.round);
    settings.rate = number("CAUSEWAY_COLLECTIVES_MEGABITS", settings.rate * 8) / 8;
    settings.rate = settings.rate > 0 ? settings.rate : 1;
    settings.flit = number("CAUSEWAY_COLLECTIVES_FLIT_BYTES", settings.flit);
    const char *native = getenv("CAUSEWAY_COLLECTIVES_NATIVE");
    for (int i = 0; i < OPERATIONS; i++)
        settings.native[i] = names(native, operations[i]);
    real.Bcast(&settings, sizeof settings, handle.byte, 0, handle.comm_world);
}

static int ahead(void)
{
    int64_t flits = settings.round / 2 * settings.rate / settings.flit + 2;
    return flits > MOST_AHEAD ? MOST_AHEAD : (int)flits;
}

struct choice choose(const struct levels *on, enum operation operation, int64_t bytes, int commutes)
{
    struct choice choice = {.algorithm = NATIVE, .flit = settings.flit, .ahead = ahead()};
    if (settings.native[operation] || bytes > MOST_BYTES)
        return choice;
    /* What one rank holds for all must fit too. */
    int fits = bytes * on->size <= MOST_BYTES;
    switch (operation) {
    case OF_BARRIER:
        choice.algorithm = SPEAKERS;
        break;
    case OF_REDUCE_SCATTER:
        choice.algorithm = bytes < on->size * DIRECT_BYTES ? SPEAKERS : LANES;
        break;
    case OF_BCAST:
    case OF_REDUCE:
    case OF_ALLREDUCE:
        choice.algorithm = FLITS;
        break;
    case OF_GATHER:
    case OF_SCATTER:
    case OF_ALLTOALL:
        choice.algorithm = bytes < DIRECT_BYTES && fits ? SPEAKERS : DIRECT;
        break;
    case OF_ALLGATHER:
        choice.algorithm = !fits ? NATIVE : bytes < DIRECT_BYTES ? SPEAKERS : LANES;
        break;
    case OF_SCAN:
        choice.algorithm = on->in_order ? FLITS : commutes ? DIRECT : bytes <= GATHERED_SCAN_BYTES && fits ? SPEAKERS : NATIVE;
        break;
    default:
        break;
    }
    return choice;
}
