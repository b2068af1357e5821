/* causeway-collectives: shows and checks the choice of algorithms, with the same code as the preload library.
 * `causeway collectives explain` and `causeway run --collectives` call it.
 *
 *     causeway-collectives explain SIZES OPERATIONS BYTES    the table for sites with these ranks ("4,4"),
 *                                                            from the environment's settings; "-": all
 *     causeway-collectives rules FILE                        the rules in FILE, separated by commas
 *
 * The exit status is 2, with the reason on standard error, if a rule or an argument is not understood. */
#include "collectives/select/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The table goes up to the first size. The costs of a range without an end are those at the second. */
#define LARGEST_BYTES (64 << 20)
#define SHOWN_BYTES (4 << 20)

static struct settings settings;
static struct layout layout;

static int wrong(const char *what, const char *word)
{
    fprintf(stderr, "%s: \"%s\"\n", what, word);
    return 2;
}

static int read_layout(const char *sizes)
{
    layout = (struct layout){.in_order = 1, .commutes = 1, .by_rank = settings.by_rank};
    for (const char *at = sizes; *at;) {
        char *end;
        long size = strtol(at, &end, 10);
        if (end == at || size < 1 || size > 1000000 || (*end && *end != ','))
            return 0;
        layout.sites++;
        layout.ranks += (int)size;
        layout.largest = size > layout.largest ? (int)size : layout.largest;
        at = *end ? end + 1 : end;
    }
    return layout.sites > 1 && layout.ranks <= 1000000;
}

static enum algorithm chosen(enum operation operation, int64_t bytes)
{
    return settings_choose(&settings, &layout, operation, bytes);
}

static void write_bytes(int64_t bytes)
{
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
        printf("%6" PRId64 " MB", bytes >> 20);
    else if (bytes >= 1 << 10 && bytes % (1 << 10) == 0)
        printf("%6" PRId64 " kB", bytes >> 10);
    else
        printf("%6" PRId64 " B ", bytes);
}

static void write_cost(enum operation operation, enum algorithm algorithm, int64_t bytes)
{
    printf("%s %.3f ms", algorithm == NATIVE ? "flat" : algorithm_names[algorithm],
           (double)model_cost(&settings.costs, &layout, operation, algorithm, bytes) / 1e6);
}

/* Writes the costs of the chosen algorithm, of the others, and of a flat one. */
static void write_costs(enum operation operation, enum algorithm algorithm, int64_t bytes)
{
    if (operation != OF_BARRIER) {
        write_bytes(bytes);
        printf(": ");
    }
    write_cost(operation, algorithm, bytes);
    for (enum algorithm other = LEADERS; other < ALGORITHMS; other++)
        if (other != algorithm && model_fits(&layout, operation, other, bytes)) {
            printf(", ");
            write_cost(operation, other, bytes);
        }
    if (algorithm != NATIVE) {
        printf(", ");
        write_cost(operation, NATIVE, bytes);
    }
}

static void write_row(enum operation operation, int64_t low, int64_t high)
{
    printf("%-15s", operation_names[operation]);
    if (operation == OF_BARRIER) {
        printf("%24s", "");
    } else {
        write_bytes(low);
        printf(" .. ");
        if (high < INT64_MAX)
            write_bytes(high);
        else
            printf("%9s", "");
        printf("  ");
    }
    enum algorithm algorithm = chosen(operation, low);
    printf("%-12s at ", algorithm_names[algorithm]);
    /* The costs are those of the middle of the range, or of SHOWN_BYTES if it has no end. */
    int64_t at = high < INT64_MAX ? low + (high - low) / 2 : low > SHOWN_BYTES ? low : SHOWN_BYTES;
    write_costs(operation, algorithm, operation == OF_BARRIER ? 0 : at);
    printf("\n");
}

/* Finds the first size above `low`, and at most `high`, that gets another algorithm than `low`. `high` itself
 * does. */
static int64_t change(enum operation operation, int64_t low, int64_t high)
{
    enum algorithm before = chosen(operation, low);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (chosen(operation, middle) == before)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void explain_ranges(enum operation operation)
{
    int64_t begin = 0, last = 0;
    for (int64_t bytes = 1; operation != OF_BARRIER && bytes <= LARGEST_BYTES; bytes *= 2) {
        /* Two changes may lie between two powers of two. */
        for (; chosen(operation, bytes) != chosen(operation, last);) {
            int64_t at = change(operation, last, bytes);
            write_row(operation, begin, at);
            begin = last = at;
        }
        last = bytes;
    }
    write_row(operation, begin, INT64_MAX);
}

static void explain_size(enum operation operation, int64_t bytes)
{
    enum algorithm algorithm = chosen(operation, bytes);
    printf("%-15s%-12s at ", operation_names[operation], algorithm_names[algorithm]);
    write_costs(operation, algorithm, bytes);
    printf("\n");
}

/* Whether `list` names an operation. */
static int names(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length]))
            return 1;
    return 0;
}

static void write_head(void)
{
    const struct costs *costs = &settings.costs;
    printf("%d ranks at %d sites, %d at most at one, each site's ranks in a row\n", layout.ranks,
           layout.sites, layout.largest);
    printf("between sites: round trip %.3f ms, %" PRId64 " Mbit/s, %" PRId64
           " us for each message; inside: %" PRId64 " us, %" PRId64 " Mbit/s; segments of %" PRId64
           " bytes\n",
           (double)costs->rtt / 1e3, costs->rate * 8, costs->message, costs->lan_rtt, costs->lan_rate * 8,
           costs->segment);
    for (int i = 0; i < settings.rules.count; i++) {
        char rule[128];
        rule_write(&settings.rules.all[i], rule, sizeof rule);
        printf("rule: %s\n", rule);
    }
    printf("sizes are of one rank's part; of a reduced vector the whole\n\n");
}

static int explain(const char *sizes, const char *operations, const char *size)
{
    char *end;
    int all = strcmp(operations, "-") == 0, any = 0;
    int64_t bytes = strcmp(size, "-") == 0 ? -1 : strtoll(size, &end, 10);
    if (!read_layout(sizes))
        return wrong("no list of at least two sites' ranks, as 4,4 is one", sizes);
    if (bytes >= 0 && (*end || end == size))
        return wrong("no number of bytes", size);
    for (int i = 0; i < OPERATIONS; i++)
        any |= all || names(operations, operation_names[i]);
    if (!any)
        return wrong("no operation", operations);
    write_head();
    for (int i = 0; i < OPERATIONS; i++)
        if (all || names(operations, operation_names[i])) {
            if (bytes >= 0)
                explain_size((enum operation)i, bytes);
            else
                explain_ranges((enum operation)i);
        }
    return 0;
}

static int write_rules(const char *path)
{
    struct rules rules = {0};
    char said[1024] = "", rule[128];
    int right = rules_read(&rules, path, said, sizeof said);
    if (*said)
        fprintf(stderr, "%s\n", said);
    if (!right)
        return 2;
    for (int i = 0; i < rules.count; i++) {
        rule_write(&rules.all[i], rule, sizeof rule);
        printf("%s%s", i ? ", " : "", rule);
    }
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    char said[1024];
    if (argc == 3 && strcmp(argv[1], "rules") == 0)
        return write_rules(argv[2]);
    if (argc != 5 || strcmp(argv[1], "explain") != 0) {
        fprintf(stderr, "say: causeway-collectives explain SIZES OPERATIONS BYTES, "
                        "or: causeway-collectives rules FILE\n");
        return 2;
    }
    int right = settings_read(&settings, said, sizeof said);
    if (*said)
        fprintf(stderr, "%s\n", said);
    if (!right)
        return 2;
    return explain(argv[2], argv[3], argv[4]);
}
