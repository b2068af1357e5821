/* Keeps the hierarchies that communicators carry: the first operation on a communicator makes one, and it is
 * freed with the communicator. */
#ifndef CAUSEWAY_HIERARCHY_CACHE_H
#define CAUSEWAY_HIERARCHY_CACHE_H

#include "collectives/topology/hierarchy.h"

/* Whether any operations are improved at all. */
int hierarchy_wanted(void);

/* Returns a communicator's hierarchy, or NULL if its operations are not improved. The first call on a
 * communicator is collective over it. If it does not return NULL, collectives that the MPI below calls itself
 * are left to it until hierarchy_leave. */
struct hierarchy *hierarchy_enter(MPI_Comm comm);

/* Marks a new communicator as one that is never improved. All its ranks call this. */
void hierarchy_refuse(MPI_Comm comm);

/* Returns the hierarchy that a communicator carries, or NULL. A communicator that is not improved carries one
 * on which no operation runs. */
struct hierarchy *hierarchy_carried(MPI_Comm comm);

/* Whether hierarchy_enter would not wait for other ranks. */
int hierarchy_known(MPI_Comm comm);

/* Take and release a reference. A hierarchy lives until it has been released as often as it was held. */
void hierarchy_hold(struct hierarchy *on);
void hierarchy_release(struct hierarchy *on);

/* Sets whether this thread is inside one of our operations. Returns the previous value. */
int hierarchy_inside(int is_inside);

/* Ends an improved operation, and passes an error to the communicator's error handler. */
int hierarchy_leave(struct hierarchy *on, int status);
int hierarchy_raise(const struct hierarchy *on, int status);
/* The communicator whose error handler gets the errors. */
MPI_Comm hierarchy_handler(const struct hierarchy *on);

/* Called before a communicator is freed. Operations in progress on it continue. */
void hierarchy_forget(MPI_Comm comm);

/* Called in MPI_Finalize. The first releases the hierarchies that communicators carry; the second frees those
 * that have no references left. */
void hierarchies_forget(void);
void hierarchies_end(void);

#endif
