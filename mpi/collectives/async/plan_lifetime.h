/* Plans that outlive the call in which they were made: those of non-blocking operations and of persistent
 * requests. Datatypes and operations that a plan uses live as long as the plan: if the program frees them
 * earlier, this library frees them after the plan. */
#ifndef CAUSEWAY_PLAN_LIFETIME_H
#define CAUSEWAY_PLAN_LIFETIME_H

#include "collectives/async/plan.h"

/* Copies a plan, with arrays of its own, and takes one reference to it. Returns NULL if memory is
 * exhausted. */
struct plan *plan_copy(const struct plan *plan);
void plan_hold(struct plan *plan);
/* The last release ends a plan. It may be called inside the MPI's progress engine: it frees nothing there
 * that the program or another rank could notice. */
void plan_release(struct plan *plan);

/* True while such plans exist. */
int plan_lifetime_any(void);

/* Return whether a handle that the program frees must be freed later, because a plan uses it. */
int plan_lifetime_puts_off_type(MPI_Datatype type);
int plan_lifetime_puts_off_op(MPI_Op op);

/* Frees the deferred handles that no plan uses any more. Called by MPI_Type_free and MPI_Op_free, and by
 * MPI_Finalize when all plans have been released. */
void plan_lifetime_free_unused(void);

#endif
