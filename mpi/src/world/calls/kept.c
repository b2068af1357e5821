#include "world/calls/kept.h"

#include "world/below/far.h"
#include "world/below/transfer.h"

#include <stdlib.h>

int keep(struct keeping *keeping, int count, const MPI_Request requests[])
{
    int is_any = 0;
    if (!requests_any() || count <= 0)
        return 0;
    for (int i = 0; i < count && !is_any; i++) {
        struct request found = request_find(requests[i]);
        is_any = found.comm || found.far;
    }
    if (!is_any)
        return 0;
    keeping->count = count;
    keeping->all = keeping->few;
    if ((size_t)count > sizeof keeping->few / sizeof *keeping->few)
        keeping->all = malloc((size_t)count * sizeof *keeping->all);
    if (!keeping->all)
        return 0;
    for (int i = 0; i < count; i++) {
        keeping->all[i] = (struct kept){requests[i], request_find(requests[i])};
        if (keeping->all[i].is.far)
            far_hold(keeping->all[i].is.far);
    }
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
        /* The communicator lives until its handler has been called. */
        if (error && *of)
            comm_hold(*of);
        far_release(is.far);
    }
    return error;
}

void keep_end(struct keeping *keeping)
{
    for (int i = 0; i < keeping->count; i++)
        if (keeping->all[i].is.far)
            far_release(keeping->all[i].is.far);
    if (keeping->all != keeping->few)
        free(keeping->all);
}
