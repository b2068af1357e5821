/* The ways between each two sites, where they are unlike, and how messages go over them. It knows no MPI. */
#ifndef CAUSEWAY_LINKS_H
#define CAUSEWAY_LINKS_H

#include <stddef.h>
#include <stdint.h>

/* A way. Its rtt is in microseconds, its rate in bytes per microsecond: 0 where there is no way. */
struct link {
    int64_t rtt, rate;
    /* False where the way is only taken for as long as the longest. It then serves nobody but its own two
     * sites. */
    int64_t is_known;
};

/* Puts "SITE SITE MICROSECONDS MEGABITS", between commas, into a matrix of `sites` rows, in both directions.
 * Names of other sites are passed over. False, with the reason, where that is not understood; then nothing is
 * changed. */
int links_parse(const char *text, int sites, const char *(*name)(int site), struct link *links, char *error,
                size_t error_bytes);

/* Finds, for each site, the one before it on its way from `root`; the root's own is -1. It takes the way on
 * which so many bytes arrive first, in pieces that are passed on as they come, but the direct one where that
 * takes no third more. */
void links_tree(const struct link *links, int sites, int root, int64_t bytes, int parent[]);

/* Finds the site by way of which all others exchange so many bytes faster than each with each; -1 where there
 * is none. */
int links_hub(const struct link *links, int sites, int64_t bytes);

#endif
