#include "world/handles/requests.h"

#include "world/engine/numbers.h"
#include "world/handles/key.h"

static struct numbers table;

/* A record is at an even address, so the lowest bit says which kind it is. */
#define AS_COMM(pointer) ((void *)((uintptr_t)(pointer) | 1))

int requests_any(void) { return table.used > 0; }

struct request request_find(MPI_Request request)
{
    uintptr_t found = (uintptr_t)numbers_find(&table, KEY(request));
    if (found & 1)
        return (struct request){.comm = (struct comm *)(found - 1)};
    return (struct request){.far = (struct far *)found};
}

/* A handle that is there already is one that the MPI has used again; what it named has ended unseen. */
static int add(MPI_Request request, void *named)
{
    if (numbers_find(&table, KEY(request)))
        request_remove(request);
    return numbers_add(&table, KEY(request), named) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int request_add_native(MPI_Request request, struct comm *comm)
{
    comm_hold(comm);
    return add(request, AS_COMM(comm));
}

int request_add_far(MPI_Request request, struct far *far) { return add(request, far); }

void request_remove(MPI_Request request)
{
    struct request found = request_find(request);
    numbers_remove(&table, KEY(request));
    if (found.comm)
        comm_release(found.comm);
}
