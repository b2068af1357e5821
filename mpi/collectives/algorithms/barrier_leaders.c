/* R/2, and S * (S - 1) empty messages: the ranks of each site synchronize, the leader of each site notifies
 * the other leaders, and then its own site. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

int barrier_leaders(struct hierarchy *on)
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    char go = 0;
    if (on->local_size > 1)
        status = intra_site_barrier(on);
    if (on->local_rank == 0) {
        for (int s = 0; s < on->sites; s++)
            if (s != on->site) {
                int other = leader(on, s, -1);
                TRY(status, requests_receive(&some, on, NULL, 0, handle.byte, other, TAG_BARRIER));
                TRY(status, requests_send(&some, on, NULL, 0, handle.byte, other, TAG_BARRIER));
            }
        TRY(status, requests_wait(&some));
    }
    /* Broadcasts one byte, because a broadcast of no bytes need not wait for anybody. */
    if (on->local_size > 1)
        TRY(status, intra_site_bcast(on, &go, 1, handle.byte, 0));
    requests_free(&some, status);
    return status;
}
