#include "collectives/select/settings.h"

#include "collectives/select/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "CAUSEWAY_COLLECTIVES_"

/* Reads a positive number from a variable. Returns false if the variable is not set. */
static int number(const char *name, int64_t *value)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return 0;
    long long read = strtoll(text, &end, 10);
    if (!*end && read > 0)
        *value = read;
    return 1;
}

/* Reads a rate in Mbit/s, and converts it to bytes per microsecond. */
static void rate(const char *name, int64_t *value)
{
    int64_t megabits = *value * 8;
    number(name, &megabits);
    *value = megabits >= 8 ? megabits / 8 : 1;
}

static const char *text(const char *name)
{
    const char *text = getenv(name);
    return text ? text : "";
}

const char *settings_sites(void) { return text(PREFIX "SITES"); }

const char *settings_grid_map(void) { return text("CAUSEWAY_GRID"); }

const char *settings_world(void) { return text("CAUSEWAY_WORLD"); }

int settings_may_have_sites(void) { return *settings_sites() || *settings_grid_map(); }

const char *settings_groups(void) { return text(PREFIX "GROUPS"); }

const char *settings_links(void) { return text(PREFIX "LINKS"); }

int settings_by_rank(void) { return *text(PREFIX "SAME_BITS") && strcmp(text(PREFIX "SAME_BITS"), "0") != 0; }

int settings_read(struct settings *settings, char *said, size_t said_bytes)
{
    const char *rules = getenv(PREFIX "RULES"), *file = getenv(PREFIX "FILE");
    memset(settings, 0, sizeof *settings);
    said[0] = 0;
    struct costs *costs = &settings->costs;
    *costs = costs_default;
    number(PREFIX "RTT_MICROSECONDS", &costs->rtt);
    rate(PREFIX "MEGABITS", &costs->rate);
    number(PREFIX "LAN_RTT_MICROSECONDS", &costs->lan_rtt);
    rate(PREFIX "LAN_MEGABITS", &costs->lan_rate);
    number(PREFIX "MESSAGE_MICROSECONDS", &costs->message);
    number(PREFIX "SEGMENT_BYTES", &costs->segment);
    settings->by_rank = settings_by_rank();
    int right = !rules || rules_parse(&settings->rules, rules, PREFIX "RULES", said, said_bytes);
    right = right && (!file || !*file || rules_read(&settings->rules, file, said, said_bytes));
    return right;
}

enum algorithm settings_choose(const struct settings *settings, const struct layout *layout,
                               enum operation operation, int64_t bytes)
{
    enum algorithm model = model_cheapest(&settings->costs, layout, operation, bytes);
    return rules_find(&settings->rules, layout, operation, bytes, model);
}
