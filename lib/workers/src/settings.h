/* How a run goes: the caller's choices, then those of the environment, which win. Rank 0 reads them for all.
 */
#ifndef CAUSEWAY_WORKERS_SETTINGS_H
#define CAUSEWAY_WORKERS_SETTINGS_H

#include "../causeway_workers.h"

#define WORKERS_TEXT_BYTES 256

struct workers_settings {
    int64_t block_items, piece_bytes;
    int shape, boss, attempts, progress;
    double deadline_seconds, patience_seconds;
    /* 0: standard MPI tells of no groups here. */
    int has_sites, has_hosts, has_groups;
    char groups[WORKERS_TEXT_BYTES];
};

/* Returns 0 and the words of what is wrong where something is. */
int workers_settings_read(struct workers_settings *settings, const struct causeway_workers *job,
                          char wrong[WORKERS_TEXT_BYTES]);

#endif
