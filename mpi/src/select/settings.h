/* What the environment says of collectives (docs/collectives.md has the variables). It knows no MPI. */
#ifndef CAUSEWAY_SETTINGS_H
#define CAUSEWAY_SETTINGS_H

#include "select/rules.h"

/* Flat: rank 0's bytes are everybody's. */
struct settings {
    struct costs costs;
    struct rules rules;
    /* Reductions in the order of ranks alone. */
    int by_rank;
};

/* Reads them. False, with what is wrong in `error`, where a rule is not understood: then it is as if nothing stood where it stands. */
int settings_read(struct settings *settings, char *error, size_t error_bytes);

/* Whether the environment asks for reductions in the order of ranks alone. */
int settings_by_rank(void);

/* What an operation gets. `bytes` as in model_cost. */
enum algorithm settings_choose(const struct settings *settings, const struct layout *layout, enum operation operation, int64_t bytes);

#endif
