#define _GNU_SOURCE
#include "select/choice.h"

#include "select/settings.h"
#include "topology/sites.h"

#include <stdio.h>
#include <stdlib.h>

/* Each costs a site's ranks memory. */
#define MAX_AHEAD 64

static struct settings settings = {.costs = {.round = 1, .rate = 1, .lan_round = 1, .lan_rate = 1, .segment = 1}};

int choice_by_rank;

/* A row for each site; NULL where all ways are taken to be alike. */
static struct link *links;

#define LINKS "CAUSEWAY_COLLECTIVES_LINKS"

/* The ways that nothing is said of are the longest and the slowest. Every process is told of some, or none is. */
static void learn_links(int rank)
{
    const char *said = getenv(LINKS);
    int count = sites_count * sites_count;
    char error[256];
    if (sites_count < 3 || !said || !*said || !(links = malloc(count * sizeof *links)))
        return;
    for (int i = 0; i < count; i++)
        links[i] = (struct link){settings.costs.round, settings.costs.rate, 0};
    if (rank == 0 && !links_parse(said, sites_count, sites_name, links, error, sizeof error))
        fprintf(stderr, "causeway collectives: " LINKS ": %s; all are taken to be alike\n", error);
    if (real.Bcast(links, count * (int)sizeof *links, handle.byte, 0, handle.comm_world) != MPI_SUCCESS)
        choice_forget();
}

const struct link *choice_link(int from, int to) { return links ? &links[from * sites_count + to] : NULL; }

void choice_forget(void)
{
    free(links);
    links = NULL;
    choice_by_rank = 0;
}

int choice_wants_one_site(void) { return settings_by_rank(); }

void choice_learn(void)
{
    char error[512];
    int rank = 0;
    if (real.Comm_rank(handle.comm_world, &rank) == MPI_SUCCESS && rank == 0 && !settings_read(&settings, error, sizeof error))
        fprintf(stderr, "causeway collectives: %s; no rule of it is used\n", error);
    if (real.Bcast(&settings, sizeof settings, handle.byte, 0, handle.comm_world) == MPI_SUCCESS)
        choice_by_rank = settings.by_rank;
    learn_links(rank);
}

static int ahead(const struct costs *costs, int64_t segment)
{
    int64_t segments = costs->round / 2 * costs->rate / segment + 2;
    return segments > MAX_AHEAD ? MAX_AHEAD : (int)segments;
}

int64_t choice_segment(void) { return settings.costs.segment; }

struct choice choose(const struct hierarchy *on, enum operation operation, int64_t bytes, int commutes)
{
    struct layout layout = {.ranks = on->size, .sites = on->sites, .largest = on->largest, .in_order = on->in_order, .commutes = commutes,
                            .by_rank = settings.by_rank};
    enum algorithm algorithm = settings_choose(&settings, &layout, operation, bytes);
    int64_t segment = settings.costs.segment;
    if (operation == OF_ALLREDUCE && algorithm == MULTI_LEADER)
        segment = model_multi_leader_segment(segment, layout.largest, bytes);
    int segments_ahead = ahead(&settings.costs, segment);
    /* Leaders cut nothing. */
    return (struct choice){.algorithm = algorithm, .segment = algorithm == LEADERS ? MAX_BYTES : segment, .ahead = segments_ahead};
}
