/* The links between pairs of sites, if they differ, and the paths of messages over them. This file does not
 * depend on MPI. */
#ifndef CAUSEWAY_LINKS_H
#define CAUSEWAY_LINKS_H

#include <stddef.h>
#include <stdint.h>

/* A link, or a path over several. rtt is in microseconds, rate in bytes per microsecond: 0 if there is no
 * path. */
struct link {
    int64_t rtt, rate;
    /* False if nothing is known of the link: it is then assumed to be as long as the longest, and only its
     * own two sites use it. */
    int64_t is_known;
};

/* Reads "SITE SITE MICROSECONDS MEGABITS", separated by commas, into a matrix of `sites` rows, in both
 * directions. Ignores entries with unknown sites. If the text is not understood, changes nothing and returns
 * false, with the reason in `error`. */
int links_parse(const char *text, int sites, const char *(*name)(int site), struct link *links, char *error,
                size_t error_bytes);

/* Finds, for each site, its predecessor on the path from `root`; the root's is -1. Chooses the path over
 * which `bytes` bytes arrive first, if sites forward pieces as they arrive, but prefers the direct link if it
 * takes at most a third longer. */
void links_tree(const struct link *links, int sites, int root, int64_t bytes, int parent[]);

/* Finds the site through which all others exchange `bytes` bytes faster than directly. Returns -1 if there is
 * none. */
int links_hub(const struct link *links, int sites, int64_t bytes);

#endif
