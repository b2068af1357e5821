#define _GNU_SOURCE
#include "collectives/topology/groups.h"

#include "collectives/select/settings.h"
#include "collectives/topology/sites.h"

#include <stdlib.h>
#include <string.h>

/* An entry of settings_groups(): ranks of MPI_COMM_WORLD or a site, and a group name. The first entry that
 * matches a rank counts. */
struct entry {
    const char *who, *name;
    size_t who_bytes, name_bytes;
};

/* Reads the next entry. Returns false at the end. */
static int next_entry(const char **at, struct entry *entry)
{
    if (!**at)
        return 0;
    const char *end = *at + strcspn(*at, ",");
    entry->who = *at;
    entry->who_bytes = strcspn(*at, "=,");
    entry->name = entry->who + entry->who_bytes + (entry->who + entry->who_bytes < end);
    entry->name_bytes = end - entry->name;
    *at = *end ? end + 1 : end;
    return 1;
}

static int is_of(const struct entry *entry, int rank, const char *site)
{
    if (*entry->who == '@')
        return strlen(site) == entry->who_bytes - 1 && !memcmp(site, entry->who + 1, entry->who_bytes - 1);
    char *end;
    long first = strtol(entry->who, &end, 10);
    if (end == entry->who)
        return 0;
    long last = *end == '-' ? strtol(end + 1, NULL, 10) : first;
    return first <= rank && rank <= last;
}

/* The number of a group: the index of the first entry that names it. */
static int number_of(const struct entry *wanted)
{
    struct entry entry;
    const char *at = settings_groups();
    int number = 0;
    while (next_entry(&at, &entry) && (entry.name_bytes != wanted->name_bytes ||
                                       memcmp(entry.name, wanted->name, entry.name_bytes) != 0))
        number++;
    return number;
}

int groups_are_named(void) { return *settings_groups() != 0; }

int groups_own(char name[GROUP_NAME_BYTES])
{
    struct entry entry;
    const char *at = settings_groups();
    int rank;
    if (real.Comm_rank(handle.comm_world, &rank))
        return -1;
    const char *site = sites_known() ? sites_name(sites_of(rank)) : "";
    while (next_entry(&at, &entry)) {
        if (entry.name_bytes == 0 || entry.name_bytes >= GROUP_NAME_BYTES || !is_of(&entry, rank, site))
            continue;
        memcpy(name, entry.name, entry.name_bytes);
        name[entry.name_bytes] = 0;
        return number_of(&entry);
    }
    return -1;
}
