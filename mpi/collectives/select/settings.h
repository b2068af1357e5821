/* What the environment says of collectives (docs/collectives.md has the variables). It knows no MPI. */
#ifndef CAUSEWAY_SETTINGS_H
#define CAUSEWAY_SETTINGS_H

#include "collectives/select/rules.h"

/* It has no pointers: rank 0 sends its bytes to everybody. */
/* Numbers of 8 bytes alone: ranks of unlike processors tell each other all of it as MPI's long. */
struct settings {
    struct costs costs;
    struct rules rules;
    /* True where reductions must add up in the order of ranks alone. */
    int64_t by_rank;
};

/* Reads all variables. False, with what is wrong in `said`, where a rule is not understood; then it is as if
 * nothing stood where that rule stands. */
int settings_read(struct settings *settings, char *said, size_t said_bytes);

/* Whether the environment asks for reductions in the order of ranks alone. */
int settings_by_rank(void);

/* The variables below are alike in the environment of all ranks; each is empty where it is not set. */

/* The site of each rank, by name. It is for tests, and for jobs that run without the shim. */
const char *settings_sites(void);
/* The map of the grid that every process of a job has (crates/wire). */
const char *settings_grid_map(void);
/* What a process of a world of several MPIs is told (docs/own-mpi.md); empty elsewhere. */
const char *settings_world(void);
/* Whether the job may have several sites, as far as a process knows before MPI_Init. */
int settings_may_have_sites(void);
/* The groups as crates/cli/src/run/groups.rs writes them, which has checked them:
 * `0=master,4-7=solvers,@nancy=store`. */
const char *settings_groups(void);
/* The ways between sites, as links_parse reads them. */
const char *settings_links(void);

/* Decides what an operation gets. `bytes` is as in model_cost. */
enum algorithm settings_choose(const struct settings *settings, const struct layout *layout,
                               enum operation operation, int64_t bytes);

#endif
