#include "site_tree.h"

#include <float.h>
#include <string.h>

/* What the tree must gain over the binomial one. */
#define GAIN 0.95

/* Moves of one site at a time end after some passes over all; there is no proof of how many. */
#define MOST_PASSES 64

/* How much the sum of all arrivals counts beside the end: it tells trees apart that end at once, of which one
 * may be a step nearer to a better one. */
#define SUM_WEIGHT 1e-4

struct problem {
    int sites;
    const double *seconds;
    double merge_seconds;
    int is_by_number; /* children are taken by number of site, not as they arrive */
};

/* When a site has merged all its children. To take them as they arrive ends first; ties are taken by
 * number. Notes when each site's factor arrives at its parent. */
static double ready(const struct problem *problem, const int *parent, int site, double *arrival)
{
    int children[TSQR_MOST_MEASURED_SITES], count = 0;
    double now = 0;
    for (int i = 1; i < problem->sites; i++) {
        if (parent[i] != site)
            continue;
        arrival[i] = ready(problem, parent, i, arrival) + problem->seconds[i * problem->sites + site];
        int at = count++;
        for (; at > 0 && !problem->is_by_number && arrival[children[at - 1]] > arrival[i]; at--)
            children[at] = children[at - 1];
        children[at] = i;
    }
    for (int i = 0; i < count; i++)
        now = (now > arrival[children[i]] ? now : arrival[children[i]]) + problem->merge_seconds;
    return now;
}

/* The end of a tree, and with it a little of its arrivals. */
static double cost(const struct problem *problem, const int *parent)
{
    double arrival[TSQR_MOST_MEASURED_SITES] = {0}, sum = 0, end = ready(problem, parent, 0, arrival);
    for (int i = 1; i < problem->sites; i++)
        sum += arrival[i];
    return end + SUM_WEIGHT * sum;
}

static int is_below(const int *parent, int site, int top)
{
    while (site >= 0 && site != top)
        site = parent[site];
    return site == top;
}

/* Gives a site the parent that is best for the whole. */
static void move(const struct problem *problem, int *parent, int site, double *best)
{
    int chosen = parent[site];
    for (int other = 0; other < problem->sites; other++) {
        int kept = parent[site];
        if (is_below(parent, other, site))
            continue;
        parent[site] = other;
        double found = cost(problem, parent);
        if (found < *best) {
            *best = found;
            chosen = other;
        }
        parent[site] = kept;
    }
    parent[site] = chosen;
}

/* Lets two sites change places, with all that is below them, where this is better. */
static void swap(const struct problem *problem, int *parent, int a, int b, double *best)
{
    int changed[TSQR_MOST_MEASURED_SITES];
    for (int i = 0; i < problem->sites; i++) {
        int above = parent[i], place = i == a ? b : i == b ? a : i;
        changed[place] = above == a ? b : above == b ? a : above;
    }
    double found = cost(problem, changed);
    if (found < *best) {
        *best = found;
        memcpy(parent, changed, sizeof(int) * (size_t)problem->sites);
    }
}

/* Moves and swaps sites as long as this gains anything. */
static double improve(const struct problem *problem, int *parent)
{
    double best = cost(problem, parent);
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        double before = best;
        for (int site = 1; site < problem->sites; site++) {
            move(problem, parent, site, &best);
            for (int other = 1; other < site; other++)
                swap(problem, parent, site, other, &best);
        }
        if (best >= before)
            break;
    }
    return best;
}

/* The other way round in time the factors are one message that goes from the root to all. This joins the site
 * that can have it first, again and again. */
static void join_nearest(const struct problem *problem, int *parent)
{
    double free_at[TSQR_MOST_MEASURED_SITES] = {0};
    int is_joined[TSQR_MOST_MEASURED_SITES] = {1};
    for (int count = 1; count < problem->sites; count++) {
        int from = 0, to = 0;
        double first = DBL_MAX;
        for (int a = 0; a < problem->sites; a++)
            for (int b = 0; is_joined[a] && b < problem->sites; b++) {
                double there = free_at[a] + problem->merge_seconds + problem->seconds[a * problem->sites + b];
                if (!is_joined[b] && there < first) {
                    from = a;
                    to = b;
                    first = there;
                }
            }
        free_at[from] += problem->merge_seconds;
        free_at[to] = first;
        is_joined[to] = 1;
        parent[to] = from;
    }
}

/* All sites in the order of their arrivals; the root, which never arrives, is the first. */
static void put_in_order(const struct problem *problem, struct tsqr_site_tree *site_tree)
{
    double arrival[TSQR_MOST_MEASURED_SITES] = {0};
    ready(problem, site_tree->parent, 0, arrival);
    for (int i = 0; i < problem->sites; i++) {
        int at = i;
        for (; at > 1 && arrival[site_tree->order[at - 1]] > arrival[i]; at--)
            site_tree->order[at] = site_tree->order[at - 1];
        site_tree->order[at] = i;
    }
}

double tsqr_site_tree_merge_seconds(int columns)
{
    double part = columns / 64.0;
    return 0.28e-3 * part * part * part;
}

void tsqr_site_tree_binomial(int sites, struct tsqr_site_tree *site_tree)
{
    for (int i = 0; i < sites; i++) {
        site_tree->parent[i] = i == 0 ? -1 : i & (i - 1);
        site_tree->order[i] = i;
    }
}

void tsqr_site_tree_make(int sites, const double *seconds, double merge_seconds,
                         struct tsqr_site_tree *site_tree)
{
    struct problem problem = {sites, seconds, merge_seconds, 0},
                   by_number = {sites, seconds, merge_seconds, 1};
    struct tsqr_site_tree binomial, found, trial;
    double arrival[TSQR_MOST_MEASURED_SITES], best, cost_of;
    tsqr_site_tree_binomial(sites, &binomial);
    found = trial = binomial;
    best = improve(&problem, found.parent);
    for (int start = 0; start < 2; start++) {
        for (int i = 1; i < sites; i++)
            trial.parent[i] = 0;
        if (start == 1)
            join_nearest(&problem, trial.parent);
        cost_of = improve(&problem, trial.parent);
        if (cost_of < best) {
            best = cost_of;
            found = trial;
        }
    }
    if (ready(&problem, found.parent, 0, arrival) < GAIN * ready(&by_number, binomial.parent, 0, arrival)) {
        put_in_order(&problem, &found);
        *site_tree = found;
    } else {
        *site_tree = binomial;
    }
}
