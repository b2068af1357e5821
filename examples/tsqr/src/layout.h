/* Which site sends its factor to which: a tree over sites that is made for their distances. It is a function
 * of its arguments alone, so whoever computes it with the same ones gets the same tree. */
#ifndef TSQR_LAYOUT_H
#define TSQR_LAYOUT_H

/* More sites than this get the binomial tree: to measure links takes a connection for each pair. */
#define TSQR_MOST_MEASURED_SITES 16

/* A merge of 64 columns of doubles with Debian's reference LAPACK on one core of an AMD EPYC. A tree is laid
 * out before the number of columns is known; where merges take longer, such a tree has too many children at
 * its root, which costs less than another way over a link does. */
#define TSQR_MERGE_SECONDS 0.5e-3

/* Site 0 is the root; its parent is -1. A site merges its children as they come in `order`, which lists all
 * sites. */
struct tsqr_layout {
    int parent[TSQR_MOST_MEASURED_SITES], order[TSQR_MOST_MEASURED_SITES];
};

/* seconds[a * sites + b] is how long a message takes from site a to b, and the same back. sites is 1 to
 * TSQR_MOST_MEASURED_SITES. The tree ends no later than the binomial one, and takes its place only where it
 * ends at least a twentieth earlier: equal links give the same tree, however they are measured. */
void tsqr_layout_make(int sites, const double *seconds, double merge_seconds, struct tsqr_layout *layout);

/* The binomial tree by number of site. */
void tsqr_layout_binomial(int sites, struct tsqr_layout *layout);

#endif
