/* Which site sends its factor to which: a tree over sites that is made for their distances. It is a function
 * of its arguments alone, so whoever computes it with the same ones gets the same tree. */
#ifndef TSQR_SITE_TREE_H
#define TSQR_SITE_TREE_H

/* More sites than this get the binomial tree: to measure links takes a connection for each pair. */
#define TSQR_MOST_MEASURED_SITES 16

/* How long a rank takes for a merge, or to split Q's coefficients on the way back. Of 64 columns of doubles a
 * merge took 0.23 ms and a split 0.33 ms, of 128 1.4 and 2.3 ms, of 256 12 and 20 ms, with Debian's reference
 * LAPACK on one core of an AMD EPYC: it grows with the third power. */
double tsqr_site_tree_merge_seconds(int columns);

/* Site 0 is the root; its parent is -1. A site merges its children as they come in `order`, which lists all
 * sites. */
struct tsqr_site_tree {
    int parent[TSQR_MOST_MEASURED_SITES], order[TSQR_MOST_MEASURED_SITES];
};

/* seconds[a * sites + b] is how long a message takes from site a to b, and the same back. sites is 1 to
 * TSQR_MOST_MEASURED_SITES. The tree ends no later than the binomial one, and takes its place only where it
 * ends at least a twentieth earlier: equal links give the same tree, however they are measured. */
void tsqr_site_tree_make(int sites, const double *seconds, double merge_seconds,
                         struct tsqr_site_tree *site_tree);

/* The binomial tree by number of site. */
void tsqr_site_tree_binomial(int sites, struct tsqr_site_tree *site_tree);

#endif
