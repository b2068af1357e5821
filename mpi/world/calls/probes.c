/* Probes look first among far messages, then natively. A message that a probe reports must be there for a
 * receive of that source and tag, so a message of this site that belongs to an earlier receive is not
 * reported. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/engine/matching.h"
#include "world/native/progress.h"
#include "world/native/transfer.h"

static int probe_here(struct comm *on, int from, int tag, int *flag, MPI_Status *status)
{
    MPI_Status found;
    int error = real.Iprobe(from == MPI_ANY_SOURCE ? from : on->native[from], tag, on->handle, flag, &found);
    if (error != MPI_SUCCESS || !*flag)
        return error;
    transfer_name_source(on, &found);
    if (engine_is_owed(&on->channel, found.MPI_SOURCE, found.MPI_TAG))
        *flag = 0;
    else if (status != MPI_STATUS_IGNORE)
        *status = found;
    return error;
}

static int probe(struct comm *on, int from, int tag, int *flag, MPI_Status *status)
{
    progress();
    struct far far = {0};
    *flag = engine_probe(&on->channel, from == MPI_ANY_SOURCE ? ANY : from, tag == MPI_ANY_TAG ? ANY : tag,
                         &far.operation);
    if (*flag)
        far_status(&far, status);
    else if (from == MPI_ANY_SOURCE || on->native[from] != FAR)
        return probe_here(on, from, tag, flag, status);
    return MPI_SUCCESS;
}

EXPORT int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if (!on || from == MPI_PROC_NULL) {
        if (!progress_may_block())
            progress();
        return PASS(Iprobe, from, tag, comm, flag, status);
    }
    int error = check_receive(on, 0, handle.byte, from, tag);
    return error == MPI_SUCCESS ? probe(on, from, tag, flag, status) : error;
}
BOTH(Iprobe);

EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct comm *on = comm_find(comm);
    if ((!on || from == MPI_PROC_NULL) && progress_may_block())
        return PASS(Probe, from, tag, comm, status);
    struct pace pace = {0};
    int flag = 0, error = MPI_SUCCESS;
    if (on)
        error = check_receive(on, 0, handle.byte, from, tag);
    while (error == MPI_SUCCESS) {
        error = on && from != MPI_PROC_NULL ? probe(on, from, tag, &flag, status)
                                            : real.Iprobe(from, tag, comm, &flag, status);
        if (flag || error != MPI_SUCCESS)
            break;
        progress_pause(&pace);
    }
    return error;
}
BOTH(Probe);
