/* site_tree SEED CASES: the tree over sites in virtual time: CASES random matrices of distances, and examples
 * with names. The simulator here knows only parents and orders: each site takes its children's messages in
 * order, merges each, and sends on; answers go the other way round. */
#include "../../../lib/tsqr/src/site_tree.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST TSQR_MOST_MEASURED_SITES

static uint64_t state;
static double merge;
static char what[200];

static double uniform(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void expect(int is_right, const char *claim, double found, double other)
{
    if (!is_right) {
        fprintf(stderr, "site_tree: %s: not so: %s (%g, %g)\n", what, claim, found, other);
        exit(1);
    }
}

/* When a site has sent on, or the root has ended. */
static double up(int sites, const double *seconds, const struct tsqr_site_tree *tree, int site)
{
    double now = 0;
    for (int i = 0; i < sites; i++) {
        int child = tree->order[i];
        if (child == site || tree->parent[child] != site)
            continue;
        double there = up(sites, seconds, tree, child) + seconds[child * sites + site];
        now = (there > now ? there : now) + merge;
    }
    return now;
}

/* When the last site below has its answer, which this one gets at `now`. */
static double down(int sites, const double *seconds, const struct tsqr_site_tree *tree, int site, double now)
{
    double last = now;
    for (int i = sites - 1; i >= 0; i--) {
        int child = tree->order[i];
        if (child == site || tree->parent[child] != site)
            continue;
        now += merge;
        double end = down(sites, seconds, tree, child, now + seconds[child * sites + site]);
        last = end > last ? end : last;
    }
    return last;
}

static double whole(int sites, const double *seconds, const struct tsqr_site_tree *tree)
{
    double turned = up(sites, seconds, tree, 0);
    return down(sites, seconds, tree, 0, turned);
}

static void expect_tree(int sites, const struct tsqr_site_tree *tree)
{
    int seen[MOST] = {0};
    expect(tree->parent[0] == -1, "site 0 is the root", tree->parent[0], -1);
    for (int i = 0; i < sites; i++) {
        int at = i, steps = 0;
        seen[tree->order[i]]++;
        for (; at > 0 && steps <= sites; steps++)
            at = tree->parent[at];
        expect(at == 0, "each site's parents lead to the root", i, at);
    }
    for (int i = 0; i < sites; i++)
        expect(seen[i] == 1, "the order has each site once", i, seen[i]);
}

/* The best of all trees, by trying all parents of all sites; orders are by number and by site_tree's own. */
static double best_of_all(int sites, const double *seconds)
{
    int trees = 1;
    double best = 1e9;
    for (int i = 1; i < sites; i++)
        trees *= sites;
    for (int number = 0; number < trees; number++) {
        struct tsqr_site_tree tree = {.parent = {-1}};
        int is_tree = 1;
        for (int i = 1, left = number; i < sites; i++, left /= sites)
            tree.parent[i] = left % sites;
        for (int i = 1; i < sites && is_tree; i++) {
            int at = i, steps = 0;
            for (; at > 0 && steps <= sites; steps++)
                at = tree.parent[at];
            is_tree = at == 0;
        }
        /* Every order of four other sites: the permutations by repeated removal. */
        for (int which = 0; is_tree && which < 24; which++) {
            int rest[4] = {1, 2, 3, 4}, count = sites - 1, left = which;
            for (int i = 1; i < sites; i++) {
                int pick = left % count;
                left /= count;
                tree.order[i] = rest[pick];
                memmove(rest + pick, rest + pick + 1, sizeof(int) * (size_t)(count - pick - 1));
                count--;
            }
            double end = up(sites, seconds, &tree, 0);
            best = end < best ? end : best;
        }
    }
    return best;
}

/* Distances of kind 0 are random, of kind 1 those of places in a plane, of kind 2 near or far. */
static void fill(int sites, int kind, double *seconds)
{
    double x[MOST], y[MOST];
    for (int i = 0; i < sites; i++) {
        x[i] = uniform();
        y[i] = uniform();
    }
    for (int i = 0; i < sites; i++)
        for (int j = 0; j <= i; j++) {
            double far = 1e-4 + 0.02 * uniform(),
                   plane = (x[i] - x[j]) * (x[i] - x[j]) + (y[i] - y[j]) * (y[i] - y[j]);
            double chosen = kind == 0 ? far : kind == 1 ? 1e-4 + 0.03 * plane : uniform() < 0.5 ? 2e-4 : 0.05;
            seconds[i * sites + j] = seconds[j * sites + i] = i == j ? 0 : chosen;
        }
}

static void check_random(int number, double *gained)
{
    double seconds[MOST * MOST];
    struct tsqr_site_tree tree, again, binomial;
    int kind = number % 3, sites = 1 + (int)(uniform() * MOST);
    if (number % 4 == 0)
        sites = 2 + (int)(uniform() * 4);
    snprintf(what, sizeof what, "case %d: %d sites, distances of kind %d", number, sites, kind);
    fill(sites, kind, seconds);
    merge = tsqr_site_tree_merge_seconds(8 << (number % 6));
    memset(&tree, 0, sizeof tree);
    memset(&again, 0, sizeof again);
    tsqr_site_tree_make(sites, seconds, merge, &tree);
    tsqr_site_tree_make(sites, seconds, merge, &again);
    tsqr_site_tree_binomial(sites, &binomial);
    expect_tree(sites, &tree);
    expect_tree(sites, &binomial);
    expect(!memcmp(&tree, &again, sizeof tree), "the same distances give the same tree", 0, 0);
    double mine = up(sites, seconds, &tree, 0), theirs = up(sites, seconds, &binomial, 0);
    expect(mine <= theirs * (1 + 1e-12), "R is there no later than with the binomial tree", mine, theirs);
    mine = whole(sites, seconds, &tree);
    theirs = whole(sites, seconds, &binomial);
    expect(mine <= theirs * (1 + 1e-12), "all have Q no later than with the binomial tree", mine, theirs);
    if (sites > 2)
        *gained += theirs / mine;
    if (sites >= 3 && sites <= 5) {
        double best = best_of_all(sites, seconds);
        mine = up(sites, seconds, &tree, 0);
        /* A twentieth is left to the binomial tree, and the search proves nothing. */
        expect(mine <= 1.1 * best, "no tree of up to five sites ends a tenth earlier", mine, best);
    }
}

/* An example: half round trips in ms above the diagonal, row by row. */
static void check_named(const char *name, int sites, const double *above, double most, int is_binomial)
{
    double seconds[MOST * MOST] = {0};
    struct tsqr_site_tree tree, binomial;
    snprintf(what, sizeof what, "%s", name);
    for (int i = 0; i < sites; i++)
        for (int j = i + 1; j < sites; j++)
            seconds[i * sites + j] = seconds[j * sites + i] = *above++ * 1e-3;
    tsqr_site_tree_make(sites, seconds, merge, &tree);
    tsqr_site_tree_binomial(sites, &binomial);
    expect_tree(sites, &tree);
    double mine = up(sites, seconds, &tree, 0) * 1e3, theirs = up(sites, seconds, &binomial, 0) * 1e3;
    expect(mine <= most + 1e-9, "it ends in so many ms", mine, most);
    expect(is_binomial ? mine == theirs : mine < 0.95 * theirs, "it is (not) the binomial tree", mine,
           theirs);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: site_tree SEED CASES\n");
        return 2;
    }
    double gained = 0;
    state = strtoull(argv[1], NULL, 10);
    for (int i = 0; i < atoi(argv[2]); i++)
        check_random(i, &gained);
    merge = 0.5e-3;
    check_named("four sites, all 10 ms from one another", 4, (double[]){10, 10, 10, 10, 10, 10}, 11.5, 0);
    check_named("two near one another, a third far from the root and near the second", 3,
                (double[]){1, 30, 1}, 3, 0);
    check_named("sites 2 and 3 near one another, far from the root and from 1", 4,
                (double[]){1, 20, 20, 20, 20, 1}, 22, 1);
    check_named("one far site, which the binomial tree has for a parent", 4, (double[]){2, 50, 2, 50, 2, 50},
                51, 0);
    check_named("one site", 1, (double[]){0}, 0, 1);
    check_named("four sites within a host: merges take all the time", 4,
                (double[]){.001, .001, .001, .001, .001, .001}, 1.1, 1);
    double eight[28];
    for (int i = 0; i < 28; i++)
        eight[i] = 10;
    check_named("eight sites, all 10 ms from one another", 8, eight, 13.5, 0);
    merge = 100e-3;
    check_named("the same with merges of 100 ms, of which a star would take seven", 8, eight, 330, 1);
    printf("site_tree: seed %s: %s random matrices of distances and all examples\n", argv[1], argv[2]);
    return 0;
}
