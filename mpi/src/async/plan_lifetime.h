/* Plans that outlive the call they were made in: those of operations that go on beside the program, and of
 * persistent requests. What a plan names lives as long as the plan does: datatypes and operations that the
 * program frees meanwhile are freed after it. */
#ifndef CAUSEWAY_PLAN_LIFETIME_H
#define CAUSEWAY_PLAN_LIFETIME_H

#include "async/plan.h"

/* A copy with arrays of its own, held once; NULL without memory. */
struct plan *plan_copy(const struct plan *plan);
void plan_hold(struct plan *plan);
/* The last ends it. May be called in the MPI's progress: nothing is freed there that the program or another
 * rank could notice. */
void plan_release(struct plan *plan);

/* Whether there are any. */
int plan_lifetime_any(void);

/* Whether what the program frees is to be freed later, because a plan names it. */
int plan_lifetime_puts_off_type(MPI_Datatype type);
int plan_lifetime_puts_off_op(MPI_Op op);

/* Frees what no plan names any more: in calls that free, and in MPI_Finalize when all plans have been
 * released. */
void plan_lifetime_free_unused(void);

#endif
