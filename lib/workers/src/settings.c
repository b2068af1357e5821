#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Without block_items there are so many blocks, or more: enough to share out evenly among a thousand ranks. A
 * block has at most BLOCK_ITEMS_MOST items, so that failures and copies repeat little. */
#define BLOCKS_LEAST 16384
#define BLOCK_ITEMS_MOST 64

static const char *asked(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int wrong_value(const char *name, const char *value, const char *right, char wrong[WORKERS_TEXT_BYTES])
{
    snprintf(wrong, WORKERS_TEXT_BYTES, "%s=%.60s: %s", name, value, right);
    return 0;
}

static int read_number(const char *name, double *number, char wrong[WORKERS_TEXT_BYTES])
{
    const char *value = asked(name);
    if (!value)
        return 1;
    char *end;
    double found = strtod(value, &end);
    if (end == value || *end || !(found >= 0 && found < 1e15))
        return wrong_value(name, value, "this is no number of at least 0", wrong);
    *number = found;
    return 1;
}

static int read_whole(const char *name, int64_t *number, char wrong[WORKERS_TEXT_BYTES])
{
    double found = (double)*number;
    if (!read_number(name, &found, wrong))
        return 0;
    *number = (int64_t)found;
    return 1;
}

/* One of several words; its place is the value. */
static int read_word(const char *name, const char *const *words, int *place, char wrong[WORKERS_TEXT_BYTES])
{
    const char *value = asked(name);
    if (!value)
        return 1;
    char right[100] = "it is one of";
    for (int i = 0; words[i]; i++) {
        if (!strcmp(value, words[i])) {
            *place = i;
            return 1;
        }
        snprintf(right + strlen(right), sizeof right - strlen(right), " %s", words[i]);
    }
    return wrong_value(name, value, right, wrong);
}

/* Which places of the MPI's topology are groups: "site", "site,host", "none". */
static int read_levels(struct workers_settings *settings, char wrong[WORKERS_TEXT_BYTES])
{
    const char *name = "CAUSEWAY_WORKERS_LEVELS", *value = asked(name);
    char words[WORKERS_TEXT_BYTES], *rest = NULL;
    settings->has_sites = !value;
    if (!value)
        return 1;
    snprintf(words, sizeof words, "%s", value);
    for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (!strcmp(word, "site"))
            settings->has_sites = 1;
        else if (!strcmp(word, "host"))
            settings->has_hosts = 1;
        else if (!strcmp(word, "group"))
            settings->has_groups = 1;
        else if (strcmp(word, "none") != 0)
            return wrong_value(name, value, "it is a list of site, group, host, or none", wrong);
    }
    return 1;
}

static void take_choices(struct workers_settings *settings, const struct causeway_workers *job)
{
    memset(settings, 0, sizeof *settings);
    settings->block_items = job->block_items;
    settings->piece_bytes = job->piece_bytes;
    settings->shape = job->shape;
    settings->boss = job->boss;
    settings->attempts = job->attempts;
    settings->progress = job->progress;
    settings->deadline_seconds = job->deadline_seconds;
    settings->patience_seconds = job->patience_seconds;
    const char *groups = asked("CAUSEWAY_WORKERS_GROUPS");
    if (groups || job->groups)
        snprintf(settings->groups, sizeof settings->groups, "%s", groups ? groups : job->groups);
}

int workers_settings_read(struct workers_settings *settings, const struct causeway_workers *job,
                          char wrong[WORKERS_TEXT_BYTES])
{
    static const char *const shapes[] = {"auto", "flat", "hierarchical", NULL};
    static const char *const bosses[] = {"auto", "computes", "serves", NULL};
    static const char *const no_yes[] = {"0", "1", NULL};
    take_choices(settings, job);
    int64_t attempts = settings->attempts;
    if (!read_word("CAUSEWAY_WORKERS_SHAPE", shapes, &settings->shape, wrong) ||
        !read_word("CAUSEWAY_WORKERS_BOSS", bosses, &settings->boss, wrong) ||
        !read_word("CAUSEWAY_WORKERS_PROGRESS", no_yes, &settings->progress, wrong) ||
        !read_whole("CAUSEWAY_WORKERS_BLOCK", &settings->block_items, wrong) ||
        !read_whole("CAUSEWAY_WORKERS_PIECE", &settings->piece_bytes, wrong) ||
        !read_whole("CAUSEWAY_WORKERS_ATTEMPTS", &attempts, wrong) ||
        !read_number("CAUSEWAY_WORKERS_DEADLINE", &settings->deadline_seconds, wrong) ||
        !read_number("CAUSEWAY_WORKERS_PATIENCE", &settings->patience_seconds, wrong) ||
        !read_levels(settings, wrong))
        return 0;
    settings->attempts = attempts < 1 ? 1 : attempts > 1000 ? 1000 : (int)attempts;
    if (settings->block_items < 1) {
        int64_t items = job->items / BLOCKS_LEAST;
        settings->block_items = items < 1 ? 1 : items > BLOCK_ITEMS_MOST ? BLOCK_ITEMS_MOST : items;
    }
    if (settings->block_items > job->items)
        settings->block_items = job->items;
    if (settings->piece_bytes < 1)
        settings->piece_bytes = 256 * 1024;
    if (settings->progress < 0)
        settings->progress = isatty(2);
    return 1;
}
