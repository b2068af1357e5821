/* One call of a collective operation: its arguments as the program gave them, and how to run it. */
#ifndef CAUSEWAY_PLAN_H
#define CAUSEWAY_PLAN_H

#include "collectives/select/choice.h"
#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* Counts and displacements by rank. A call uses either the int arrays or the large ones. */
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
    /* NULL if the call is left to the MPI. */
    struct hierarchy *on;
    struct choice choice;
    struct shape shape, into_shape;
    const void *from;
    void *into;
    int64_t count, into_count;
    /* The vectors that a call with v or w in its name sends and receives. */
    struct vector out, in;
    /* The next three members are for a plan that outlives its call: the memory of `out` and `in`, the
     * reference count, and the next plan. */
    void *owned;
    int holders;
    struct plan *next;
    MPI_Datatype type, into_type;
    const MPI_Datatype *types, *into_types;
    MPI_Op op;
    int root, inclusive;
    /* The first tag of its messages. A blocking call does not use it. */
    int tags;
    /* Runs the operation, on plan->on or on a copy of it with tags of its own. May block. */
    int (*run)(struct hierarchy *on, const struct plan *plan);
};

#endif
