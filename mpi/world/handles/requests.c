#include "world/handles/requests.h"

#include "world/engine/numbers.h"
#include "world/handles/key.h"

static struct numbers table;

/* Records are at addresses divisible by four, so the two lowest bits say which kind each is. */
enum { IS_FAR, IS_COMM, IS_PERSISTENT };
#define AS(kind, pointer) ((void *)((uintptr_t)(pointer) | (kind)))

int requests_any(void) { return table.used > 0; }

struct request request_find(MPI_Request request)
{
    uintptr_t found = (uintptr_t)numbers_find(&table, KEY(request));
    switch (found & 3) {
    case IS_COMM:
        return (struct request){.comm = (struct comm *)(found - IS_COMM)};
    case IS_PERSISTENT:
        return (struct request){.persistent = (struct persistent *)(found - IS_PERSISTENT)};
    default:
        return (struct request){.far = (struct far *)found};
    }
}

/* If the handle is already in the table, the MPI has reused it: its former request ended unnoticed. */
static int add(MPI_Request request, void *named)
{
    if (numbers_find(&table, KEY(request)))
        request_remove(request);
    return numbers_add(&table, KEY(request), named) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int request_add_native(MPI_Request request, struct comm *comm)
{
    comm_hold(comm);
    return add(request, AS(IS_COMM, comm));
}

int request_add_far(MPI_Request request, struct far *far) { return add(request, far); }

int request_add_persistent(MPI_Request request, struct persistent *persistent)
{
    return add(request, AS(IS_PERSISTENT, persistent));
}

void request_remove(MPI_Request request)
{
    struct request found = request_find(request);
    numbers_remove(&table, KEY(request));
    if (found.comm)
        comm_release(found.comm);
}
