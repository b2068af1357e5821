/* Keeps the hierarchies that communicators carry: the first operation on a communicator makes one, and it is
 * freed with the communicator. */
#ifndef CAUSEWAY_HIERARCHY_CACHE_H
#define CAUSEWAY_HIERARCHY_CACHE_H

#include "collectives/topology/hierarchy.h"

/* Whether any operations are improved at all. */
int hierarchy_wanted(void);

/* Returns a communicator's hierarchy, or NULL where its operations are not improved. The first call on a
 * communicator is collective over it. After a call that did not return NULL, and until hierarchy_leave, the
 * collectives that the MPI below calls itself are left to it. */
struct hierarchy *hierarchy_enter(MPI_Comm comm);

/* Has a new communicator's operations never be improved. All its ranks call this. */
void hierarchy_refuse(MPI_Comm comm);

/* Returns what a communicator carries, or NULL. One that is not improved carries a hierarchy on which nothing
 * goes on. */
struct hierarchy *hierarchy_carried(MPI_Comm comm);

/* Whether hierarchy_enter waits for nobody. */
int hierarchy_known(MPI_Comm comm);

/* Keeps a hierarchy until it has been released as often as it was held. */
void hierarchy_hold(struct hierarchy *on);
void hierarchy_release(struct hierarchy *on);

/* Says whether this thread is inside an operation of ours. Returns whether it was before. */
int hierarchy_inside(int is_inside);

/* Ends an improved operation, and gives an error to the communicator's error handler. */
int hierarchy_leave(struct hierarchy *on, int status);
int hierarchy_raise(const struct hierarchy *on, int status);
/* The communicator whose error handler gets the errors. */
MPI_Comm hierarchy_handler(const struct hierarchy *on);

/* Called before a communicator is freed. Operations that are under way there go on. */
void hierarchy_forget(MPI_Comm comm);

/* Called in MPI_Finalize: frees what communicators carry, and, when nobody holds them any more, the
 * others. */
void hierarchies_forget(void);
void hierarchies_end(void);

#endif
