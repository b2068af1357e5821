/* Native operations among processes of one site. While one blocks, nothing would make progress: so if the MPI
 * has no hook, the non-blocking form is used, always and by all ranks, because the two forms do not match
 * each other. */
#ifndef CAUSEWAY_WORLD_NATIVE_H
#define CAUSEWAY_WORLD_NATIVE_H

#include "common/binding/export.h"
#include "world/native/progress.h"

/* NATIVE(Bcast, Ibcast, arguments...). Without an MPI below there is nothing to call. */
#define NATIVE(name, iname, ...)                                                                          \
    (!ours.is_on || progress_has_hook ? PASS(name, __VA_ARGS__) : __extension__({                         \
        MPI_Request native_request;                                                                       \
        int native_status = real.iname(__VA_ARGS__, &native_request);                                     \
        native_status == MPI_SUCCESS ? progress_wait(&native_request, MPI_STATUS_IGNORE) : native_status; \
    }))

/* Waits for the other ranks, and then calls the blocking form. */
#define NATIVE_MET(name, comm, ...)                  \
    __extension__({                                  \
        int native_status = native_meet(comm);       \
        TRY(native_status, PASS(name, __VA_ARGS__)); \
    })

/* Whether `comm` is an intercommunicator. False if the MPI has a hook: then nobody needs to know. */
int native_is_inter(MPI_Comm comm);

/* Waits for the other ranks before an operation that has no non-blocking form, so that the operation does not
 * wait for ranks that are still elsewhere. */
int native_meet(MPI_Comm comm);

#endif
