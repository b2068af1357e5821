/* The hierarchies that communicators carry: made by the first operation on each, and freed with it. */
#ifndef CAUSEWAY_HIERARCHY_CACHE_H
#define CAUSEWAY_HIERARCHY_CACHE_H

#include "topology/hierarchy.h"

/* Whether any operations are improved at all. */
int hierarchy_wanted(void);

/* A communicator's, or NULL where its operations are not improved. The first call on a communicator is
 * collective over it. Between a call that did not give NULL and hierarchy_leave, collectives that the MPI
 * below calls itself are left to it. */
struct hierarchy *hierarchy_enter(MPI_Comm comm);

/* What a communicator carries, if anything: what is not improved carries one that nothing goes on on. */
struct hierarchy *hierarchy_carried(MPI_Comm comm);

/* Whether entering a communicator waits for nobody. */
int hierarchy_known(MPI_Comm comm);

/* Keeps it until it is released as often. */
void hierarchy_hold(struct hierarchy *on);
void hierarchy_release(struct hierarchy *on);

/* Says whether this thread is inside an operation of ours; what it was before. */
int hierarchy_inside(int is_inside);

/* Ends an improved operation; gives errors to the communicator's error handler. */
int hierarchy_leave(struct hierarchy *on, int status);
int hierarchy_raise(const struct hierarchy *on, int status);
/* The communicator whose error handler that is. */
MPI_Comm hierarchy_handler(const struct hierarchy *on);

/* Before a communicator is freed. Operations under way there go on. */
void hierarchy_forget(MPI_Comm comm);

/* In MPI_Finalize: all communicators', and when nobody holds any more, the rest. */
void hierarchies_forget(void);
void hierarchies_end(void);

#endif
