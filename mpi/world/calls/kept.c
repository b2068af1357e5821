#include "world/calls/kept.h"

#include "world/handles/persistent.h"
#include "world/native/far.h"
#include "world/native/transfer.h"

#include <stdlib.h>

static void keep_one(struct kept *kept, MPI_Request *request)
{
    *kept = (struct kept){.handle = *request, .is = request_find(*request)};
    struct persistent *persistent = kept->is.persistent;
    kept->is.persistent = NULL;
    if (persistent && persistent->active != handle.request_null) {
        kept->persistent = persistent;
        *request = kept->handle = persistent->active;
        kept->is = request_find(kept->handle);
    }
    if (kept->is.far)
        far_hold(kept->is.far);
}

int keep(struct keeping *keeping, int count, MPI_Request requests[])
{
    int is_any = 0;
    if (!requests_any() || count <= 0 || !requests)
        return 0;
    for (int i = 0; i < count && !is_any; i++) {
        struct request found = request_find(requests[i]);
        is_any = found.comm || found.far || found.persistent;
    }
    if (!is_any)
        return 0;
    keeping->count = count;
    keeping->all = keeping->few;
    if ((size_t)count > sizeof keeping->few / sizeof *keeping->few)
        keeping->all = malloc((size_t)count * sizeof *keeping->all);
    if (!keeping->all)
        return 0;
    keeping->requests = requests;
    for (int i = 0; i < count; i++)
        keep_one(&keeping->all[i], &requests[i]);
    return 1;
}

int kept_completes(struct keeping *keeping, int i, MPI_Status *status, struct comm **of)
{
    struct kept *kept = &keeping->all[i];
    struct request is = kept->is;
    int error = MPI_SUCCESS;
    kept->is = (struct request){0};
    if (is.comm)
        transfer_name_source(is.comm, status);
    if (is.comm || is.far)
        request_remove(kept->handle);
    if (is.far) {
        error = is.far->error;
        *of = is.far->comm;
        if (error && is.far->is_raised)
            *of = NULL;
        /* The communicator lives until its error handler has been called. */
        if (error && *of)
            comm_hold(*of);
        far_release(is.far);
    }
    return error;
}

void keep_end(struct keeping *keeping)
{
    for (int i = 0; i < keeping->count; i++) {
        const struct kept *kept = &keeping->all[i];
        if (kept->is.far)
            far_release(kept->is.far);
        if (!kept->persistent)
            continue;
        kept->persistent->active = keeping->requests[i];
        keeping->requests[i] = kept->persistent->handle;
    }
    if (keeping->all != keeping->few)
        free(keeping->all);
}
