/* Functions that the world library does not support over sites: it reports each function once, and calls the
 * error handler of the object. */
#ifndef CAUSEWAY_WORLD_REFUSE_H
#define CAUSEWAY_WORLD_REFUSE_H

#include "common/binding/export.h"
#include "world/handles/comms.h"
#include "world/native/native.h"

/* Returns the error. */
int refuse(MPI_Comm comm, const char *function, int *is_told);

#define refuse_is_over_sites(comm) (ours.is_on && comm_find(comm) != NULL)

/* Defines a function that is native within a site, and refused if `comm` spans sites. Not every MPI has
 * each. */
#define REFUSE(name, comm, PARAMETERS, ARGUMENTS) REFUSE_AFTER((void)0, name, comm, PARAMETERS, ARGUMENTS)
/* The same for a function that waits for other ranks of its site, and has no non-blocking form. */
#define REFUSE_MEETING(name, comm, PARAMETERS, ARGUMENTS) \
    REFUSE_AFTER(ours.is_on ? native_meet(comm) : MPI_SUCCESS, name, comm, PARAMETERS, ARGUMENTS)

#define REFUSE_AFTER(first, name, comm, PARAMETERS, ARGUMENTS) \
    EXPORT int MPI_##name PARAMETERS                           \
    {                                                          \
        static int is_told;                                    \
        static int(*own) PARAMETERS;                           \
        if (refuse_is_over_sites(comm))                        \
            return refuse(comm, "MPI_" #name, &is_told);       \
        first;                                                 \
        if (!own)                                              \
            own = (int(*) PARAMETERS)mpi_calls_find(#name);    \
        return own ? own ARGUMENTS : NO_MPI;                   \
    }                                                          \
    BOTH(name);

#endif
