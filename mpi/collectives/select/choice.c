#include "collectives/select/choice.h"

#include <stdlib.h>

/* Limits `ahead`, because each segment costs a site's ranks memory. */
#define MAX_AHEAD 64

static struct settings settings = {.costs = {.rtt = 1, .rate = 1, .lan_rtt = 1, .lan_rate = 1, .segment = 1}};

int choice_by_rank;

static struct link *links;
static int linked_sites;

void choice_use(const struct settings *agreed, struct link *agreed_links, int sites)
{
    settings = *agreed;
    choice_by_rank = settings.by_rank;
    free(links);
    links = agreed_links;
    linked_sites = sites;
}

const struct link *choice_link(int from, int to) { return links ? &links[from * linked_sites + to] : NULL; }

void choice_forget(void)
{
    free(links);
    links = NULL;
    choice_by_rank = 0;
}

static int ahead(const struct costs *costs, int64_t segment)
{
    int64_t segments = costs->rtt / 2 * costs->rate / segment + 2;
    return segments > MAX_AHEAD ? MAX_AHEAD : (int)segments;
}

int64_t choice_segment(void) { return settings.costs.segment; }

struct choice choose(struct layout layout, enum operation operation, int64_t bytes)
{
    layout.by_rank = settings.by_rank;
    enum algorithm algorithm = settings_choose(&settings, &layout, operation, bytes);
    int64_t segment = settings.costs.segment;
    if (operation == OF_ALLREDUCE && algorithm == MULTI_LEADER)
        segment = model_multi_leader_segment(segment, layout.largest, bytes);
    int segments_ahead = ahead(&settings.costs, segment);
    /* LEADERS does not cut messages into segments. */
    return (struct choice){.algorithm = algorithm,
                           .segment = algorithm == LEADERS ? MAX_BYTES : segment,
                           .ahead = segments_ahead};
}
