#include "collectives/select/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With more sites, all links count as equal. */
#define MAX_SITES 64

/* The time over a path that does not exist. */
#define NEVER INT64_MAX

static int index_of(const char *word, int sites, const char *(*name)(int site))
{
    for (int i = 0; i < sites; i++)
        if (strcmp(word, name(i)) == 0)
            return i;
    return -1;
}

int links_parse(const char *text, int sites, const char *(*name)(int site), struct link *links, char *error,
                size_t error_bytes)
{
    struct link *read = malloc((size_t)sites * sites * sizeof *read);
    int right = read != NULL;
    if (!right)
        snprintf(error, error_bytes, "out of memory");
    else
        memcpy(read, links, (size_t)sites * sites * sizeof *read);
    for (const char *at = text; right && *at;) {
        char from[64], to[64];
        long long rtt, megabits;
        int length = 0, words = sscanf(at, " %63s %63s %lld %lld %n", from, to, &rtt, &megabits, &length);
        right = words == 4 && (at[length] == ',' || !at[length]) && rtt > 0 && megabits >= 0;
        if (!right) {
            snprintf(error, error_bytes, "\"%.*s\": say SITE SITE MICROSECONDS MEGABITS",
                     (int)strcspn(at, ","), at);
            break;
        }
        int i = index_of(from, sites, name), j = index_of(to, sites, name);
        if (i >= 0 && j >= 0 && i != j)
            read[i * sites + j] = read[j * sites + i] =
                (struct link){rtt, megabits > 0 && megabits < 8 ? 1 : megabits / 8, 1};
        at += length + (at[length] == ',');
    }
    if (right)
        memcpy(links, read, (size_t)sites * sites * sizeof *read);
    free(read);
    return right;
}

/* The time in nanoseconds that `bytes` bytes take. */
static int64_t took(struct link way, int64_t bytes)
{
    return way.rate > 0 ? way.rtt * 500 + bytes / way.rate * 1000 : NEVER;
}

/* The path over two links in sequence, with pieces pipelined over both. There is no path over a link of which
 * nothing is known. */
static struct link behind(struct link first, struct link second)
{
    int is_known = first.is_known && second.is_known;
    int64_t slowest = first.rate < second.rate ? first.rate : second.rate;
    return (struct link){first.rtt + second.rtt, is_known ? slowest : 0, is_known};
}

/* The longest time worth a path through another site: a quarter less than over the direct link. The
 * measurements are not exact, and the links to two sites may share a physical one. */
static int64_t worth(int64_t time) { return time / 4 * 3; }

/* Finds the unreached site with the shortest time. */
static int next(const struct link way[], const int reached[], int sites, int64_t bytes)
{
    int best = -1;
    for (int s = 0; s < sites; s++)
        if (!reached[s] && (best < 0 || took(way[s], bytes) < took(way[best], bytes)))
            best = s;
    return best;
}

/* Dijkstra's algorithm. Returns the time at which the last site has the message. */
static int64_t grow(const struct link *links, int sites, int root, int64_t bytes, int parent[])
{
    struct link way[MAX_SITES];
    int reached[MAX_SITES] = {0};
    int64_t last = 0;
    for (int s = 0; s < sites; s++) {
        way[s] = links[root * sites + s];
        parent[s] = root;
    }
    parent[root] = -1;
    reached[root] = 1;
    for (int s; (s = next(way, reached, sites, bytes)) >= 0;) {
        reached[s] = 1;
        last = took(way[s], bytes);
        for (int t = 0; t < sites; t++) {
            struct link by = behind(way[s], links[s * sites + t]);
            if (!reached[t] && way[t].is_known && took(by, bytes) < worth(took(way[t], bytes))) {
                way[t] = by;
                parent[t] = s;
            }
        }
    }
    return last;
}

void links_tree(const struct link *links, int sites, int root, int64_t bytes, int parent[])
{
    if (links && sites <= MAX_SITES) {
        grow(links, sites, root, bytes, parent);
        return;
    }
    for (int s = 0; s < sites; s++)
        parent[s] = s == root ? -1 : root;
}

int links_hub(const struct link *links, int sites, int64_t bytes)
{
    int best = -1, parent[MAX_SITES];
    int64_t least = 0;
    if (!links || sites < 3 || sites > MAX_SITES)
        return -1;
    for (int i = 0; i < sites; i++)
        for (int j = 0; j < sites; j++)
            if (i != j && took(links[i * sites + j], bytes) > least)
                least = took(links[i * sites + j], bytes);
    least = worth(least);
    for (int s = 0; s < sites; s++) {
        int64_t last = grow(links, sites, s, bytes, parent);
        if (last < least / 2) {
            best = s;
            least = 2 * last;
        }
    }
    return best;
}
