/* Plans that outlive the call they were made in: those of operations that go on beside the program, and of persistent requests. What a plan
 * names lives as long as the plan does: datatypes and operations that the program frees meanwhile are freed after it. */
#ifndef CAUSEWAY_PLAN_LIFETIME_H
#define CAUSEWAY_PLAN_LIFETIME_H

#include "async/plan.h"

/* A copy with arrays of its own, held once; NULL without memory. */
struct plan *plan_copy(const struct plan *plan);
void plan_hold(struct plan *plan);
/* The last ends it. May be called in the MPI's progress: nothing is freed there that the program or another rank could notice. */
void plan_release(struct plan *plan);

/* In MPI_Finalize, when all have been released. */
void plan_lifetime_end(void);

#endif
