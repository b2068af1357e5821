/* The settings of collectives in the environment (docs/collectives.md lists the variables). This file does
 * not depend on MPI. */
#ifndef CAUSEWAY_SETTINGS_H
#define CAUSEWAY_SETTINGS_H

#include "collectives/select/rules.h"

/* Contains no pointers, because rank 0 sends it to all ranks, and only 8-byte numbers, because it is sent as
 * MPI_LONG, also between unlike processors. */
struct settings {
    struct costs costs;
    struct rules rules;
    /* True if reductions must combine only in the order of ranks. */
    int64_t by_rank;
};

/* Reads all variables. If a rule is not understood, returns false, with the error in `said`. No rule is then
 * used from the text with the error, nor from a file after it. */
int settings_read(struct settings *settings, char *said, size_t said_bytes);

/* Whether the environment asks for reductions that combine only in the order of ranks. */
int settings_by_rank(void);

/* The variables below have the same values in the environment of all ranks. An unset variable counts as
 * empty. */

/* The name of each rank's site; for tests, and for jobs that run without the shim. */
const char *settings_sites(void);
/* The map of the grid, which every process of a job gets (crates/wire). */
const char *settings_grid_map(void);
/* What a process in a world of several MPIs is told (docs/own-mpi.md); empty in other jobs. */
const char *settings_world(void);
/* Whether the job may have several sites, as far as a process can know before MPI_Init. */
int settings_may_have_sites(void);
/* The groups, as crates/run/src/groups.rs has checked and written them:
 * `0=master,4-7=solvers,@nancy=store`. */
const char *settings_groups(void);
/* The links between sites, in the form that links_parse reads. */
const char *settings_links(void);

/* Chooses an operation's algorithm, by the rules and then by the model. `bytes` is as in model_cost. */
enum algorithm settings_choose(const struct settings *settings, const struct layout *layout,
                               enum operation operation, int64_t bytes);

#endif
