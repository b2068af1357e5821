/* What processes of one site do together natively. A blocking collective would let nobody look: where the MPI
 * has no hook the non-blocking form is used, by all ranks and always, since the two do not match each other.
 */
#ifndef CAUSEWAY_WORLD_LOCAL_H
#define CAUSEWAY_WORLD_LOCAL_H

#include "common/binding/export.h"
#include "world/native/look.h"

/* LOCAL(Bcast, Ibcast, arguments...). Without an MPI below there is nothing to call. */
#define LOCAL(name, iname, ...)                                                                    \
    (!ours.is_on || look_has_hook ? PASS(name, __VA_ARGS__) : __extension__({                      \
        MPI_Request local_request;                                                                 \
        int local_status = real.iname(__VA_ARGS__, &local_request);                                \
        local_status == MPI_SUCCESS ? look_wait(&local_request, MPI_STATUS_IGNORE) : local_status; \
    }))

/* Meets the others, and then calls the blocking form. */
#define LOCAL_MET(name, comm, ...)                  \
    __extension__({                                 \
        int local_status = local_meet(comm);        \
        TRY(local_status, PASS(name, __VA_ARGS__)); \
    })

/* False where the MPI has a hook: then nobody needs to know. */
int local_is_inter(MPI_Comm comm);

/* Meets the others first, where what follows has no non-blocking form: then it waits for nobody who is
 * elsewhere. */
int local_meet(MPI_Comm comm);

#endif
