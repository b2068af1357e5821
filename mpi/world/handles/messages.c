#include "world/handles/messages.h"

#include "world/engine/numbers.h"
#include "world/handles/key.h"

#include <stdlib.h>

static struct numbers table;

static int add(MPI_Message name, struct taken taken)
{
    struct taken *kept = malloc(sizeof *kept);
    if (!kept || numbers_add(&table, KEY(name), kept)) {
        free(kept);
        return MPI_ERR_NO_MEM;
    }
    *kept = taken;
    comm_hold(taken.comm);
    return MPI_SUCCESS;
}

int message_note(struct comm *comm, MPI_Message name) { return add(name, (struct taken){.comm = comm}); }

int message_name(struct comm *comm, struct message *far, MPI_Message *name)
{
    MPI_Request sending;
    int flag = 0, status = real.Isend(NULL, 0, handle.byte, 0, 0, ours.self, &sending);
    while (status == MPI_SUCCESS && !flag)
        status = real.Improbe(0, 0, ours.self, &flag, name, MPI_STATUS_IGNORE);
    /* Some MPIs complete the send only once the message is received. */
    TRY(status, real.Request_free(&sending));
    TRY(status, add(*name, (struct taken){comm, far}));
    return status;
}

struct taken message_take(MPI_Message name)
{
    struct taken *kept = table.used ? numbers_find(&table, KEY(name)) : NULL, taken = {0};
    if (!kept)
        return taken;
    numbers_remove(&table, KEY(name));
    taken = *kept;
    free(kept);
    return taken;
}
