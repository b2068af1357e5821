/* Plans that outlive the call they were made in: those of operations that go on beside the program, and of
 * persistent requests. What a plan names lives as long as the plan does: datatypes and operations that the
 * program frees meanwhile are freed after it. */
#ifndef CAUSEWAY_PLAN_LIFETIME_H
#define CAUSEWAY_PLAN_LIFETIME_H

#include "collectives/async/plan.h"

/* Copies a plan, with arrays of its own, and holds it once. NULL without memory. */
struct plan *plan_copy(const struct plan *plan);
void plan_hold(struct plan *plan);
/* The last release ends a plan. It may be called in the MPI's progress: it frees nothing there that the
 * program or another rank could notice. */
void plan_release(struct plan *plan);

/* True while such plans exist. */
int plan_lifetime_any(void);

/* Return whether what the program frees must be freed later, because a plan names it. */
int plan_lifetime_puts_off_type(MPI_Datatype type);
int plan_lifetime_puts_off_op(MPI_Op op);

/* Frees what no plan names any more. Called by calls that free, and by MPI_Finalize when all plans have been
 * released. */
void plan_lifetime_free_unused(void);

#endif
