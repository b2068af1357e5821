/* Barrier and broadcast, along a binomial tree of ranks. In an intercommunicator, the root sends to each rank
 * of the other group, and a barrier goes through the first rank of each group. */
#include "world/basic/basic.h"

enum { TAG = 1 };

/* The root is in one group; the other group receives. */
static int bcast_over(struct comm *on, void *buffer, int count, MPI_Datatype type, int root)
{
    int status = MPI_SUCCESS;
    if (root >= 0)
        return transfer_receive_now(on, buffer, count, type, root, TAG, MPI_STATUS_IGNORE);
    for (int rank = 0; root == MPI_ROOT && rank < on->peers; rank++)
        TRY(status, transfer_send_now(on, buffer, count, type, rank, TAG));
    return status;
}

int basic_bcast(struct comm *on, void *buffer, int count, MPI_Datatype type, int root)
{
    if (on->local)
        return bcast_over(on, buffer, count, type, root);
    int status = MPI_SUCCESS, place = (on->rank - root + on->size) % on->size, bit = 1;
    for (; bit < on->size; bit *= 2)
        if (place & bit) {
            TRY(status, transfer_receive_now(on, buffer, count, type, (on->rank - bit + on->size) % on->size,
                                             TAG, MPI_STATUS_IGNORE));
            break;
        }
    for (bit /= 2; bit > 0; bit /= 2)
        if (place + bit < on->size)
            TRY(status, transfer_send_now(on, buffer, count, type, (on->rank + bit) % on->size, TAG));
    return status;
}

/* The first rank of each group waits for its own group, then for the first rank of the other group, and then
 * releases its own group. */
static int barrier_over(struct comm *on)
{
    int status = basic_barrier(on->local);
    char nothing = 0;
    if (on->rank == 0) {
        TRY(status, transfer_send_now(on, &nothing, 0, handle.byte, 0, TAG));
        TRY(status, transfer_receive_now(on, &nothing, 0, handle.byte, 0, TAG, MPI_STATUS_IGNORE));
    }
    TRY(status, basic_bcast(on->local, &nothing, 0, handle.byte, 0));
    return status;
}

/* Every rank reports along the tree to rank 0, which then broadcasts to all. */
int basic_barrier(struct comm *on)
{
    if (on->local)
        return barrier_over(on);
    int status = MPI_SUCCESS;
    char nothing = 0;
    for (int bit = 1; bit < on->size; bit *= 2) {
        if (on->rank & bit) {
            TRY(status, transfer_send_now(on, &nothing, 0, handle.byte, on->rank - bit, TAG));
            break;
        }
        if (on->rank + bit < on->size)
            TRY(status,
                transfer_receive_now(on, &nothing, 0, handle.byte, on->rank + bit, TAG, MPI_STATUS_IGNORE));
    }
    TRY(status, basic_bcast(on, &nothing, 0, handle.byte, 0));
    return status;
}
