/* Completion of a single request, and freeing and cancelling one. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/calls/collective.h"
#include "world/calls/kept.h"
#include "world/handles/persistent.h"
#include "world/native/far.h"
#include "world/native/progress.h"
#include "world/native/transfer.h"

#include <stdlib.h>

static int completed(struct keeping *keeping, MPI_Status *status, int error)
{
    struct comm *of = NULL;
    if (error == MPI_SUCCESS)
        error = kept_completes(keeping, 0, status, &of);
    if (of && error != MPI_SUCCESS) {
        comm_error(of, error);
        comm_release(of);
    }
    keep_end(keeping);
    return error;
}

EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct keeping keeping;
    if (!request)
        return PASS(Wait, request, status);
    if (!keep(&keeping, 1, request))
        return progress_may_block() ? PASS(Wait, request, status) : progress_wait(request, status);
    int error = progress_may_block() ? real.Wait(request, status) : progress_wait(request, status);
    return completed(&keeping, status, error);
}
BOTH(Wait);

/* Makes progress before the MPI is asked, if the MPI has no hook for it. */
EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct keeping keeping;
    if (!request || !flag)
        return PASS(Test, request, flag, status);
    progress_if_needed();
    if (!keep(&keeping, 1, request))
        return PASS(Test, request, flag, status);
    int error = real.Test(request, flag, status);
    if (error == MPI_SUCCESS && *flag)
        return completed(&keeping, status, error);
    keep_end(&keeping);
    return error;
}
BOTH(Test);

/* An active one continues until it is complete. */
static void free_persistent(struct persistent *persistent)
{
    if (persistent->active != handle.request_null) {
        request_remove(persistent->active);
        real.Request_free(&persistent->active);
    }
    comm_release(persistent->comm);
    if (persistent->has_type)
        real.Type_free(&persistent->type);
    if (persistent->collective)
        collective_free(persistent->collective);
    free(persistent);
}

EXPORT int MPI_Request_free(MPI_Request *request)
{
    if (requests_any() && request) {
        struct request is = request_find(*request);
        request_remove(*request);
        if (is.persistent)
            free_persistent(is.persistent);
    }
    return PASS(Request_free, request);
}
BOTH(Request_free);

EXPORT int MPI_Cancel(MPI_Request *request)
{
    struct request is = {0};
    if (requests_any() && request)
        is = request_find(*request);
    if (is.persistent) {
        request = &is.persistent->active;
        is = request_find(*request);
    }
    if (!is.far)
        return PASS(Cancel, request);
    far_cancel(is.far);
    progress();
    return MPI_SUCCESS;
}
BOTH(Cancel);
