/* One call of a collective operation: its arguments as the program gave them, and how it is done. */
#ifndef CAUSEWAY_PLAN_H
#define CAUSEWAY_PLAN_H

#include "collectives/select/choice.h"
#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* Counts and displacements by rank. A call has either ints or large ones. */
struct vector {
    const int *counts, *displs;
    const MPI_Count *large_counts;
    const MPI_Aint *large_displs;
};

static inline int64_t vector_count(const struct vector *said, int rank)
{
    return said->counts ? said->counts[rank] : said->large_counts[rank];
}

static inline MPI_Aint vector_place(const struct vector *said, int rank)
{
    return said->displs ? said->displs[rank] : said->large_displs[rank];
}

static inline int has_counts(const struct vector *said) { return said->counts || said->large_counts; }
static inline int has_displs(const struct vector *said) { return said->displs || said->large_displs; }
static inline int has_both(const struct vector *said) { return has_counts(said) && has_displs(said); }

struct plan {
    enum form form;
    /* NULL leaves the call to the MPI. */
    struct hierarchy *on;
    struct choice choice;
    struct shape shape, into_shape;
    const void *from;
    void *into;
    int64_t count, into_count;
    /* What a call with v or w in its name sends, and what it receives. */
    struct vector out, in;
    /* The three that follow are for a plan that outlives its call: the memory of `out` and `in`, how many
     * hold the plan, and the next plan. */
    void *owned;
    int holders;
    struct plan *next;
    MPI_Datatype type, into_type;
    const MPI_Datatype *types, *into_types;
    MPI_Op op;
    int root, inclusive;
    /* Where the tags of its messages begin, unless the call waits. */
    int tags;
    /* Does the operation, on plan->on or on communicators of the same ranks. It may wait. */
    int (*run)(struct hierarchy *on, const struct plan *plan);
};

#endif
