/* R/2 + n s/B, S * (S - 1) messages: the leader of each site gathers its ranks' parts, the leaders exchange
 * them, and each broadcasts the whole within its site. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

int allgather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room)
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    char *here = room + on->first[on->site] * length;
    if (on->local_rank == 0)
        for (int s = 0; s < on->sites; s++)
            if (s != on->site)
                TRY(status,
                    requests_receive(&some, on, room + on->first[s] * length, site_size(on, s) * length,
                                     handle.byte, leader(on, s, -1), TAG_ALLGATHER));
    TRY(status, intra_site_gather(on, from, length, here, 0));
    if (on->local_rank == 0) {
        for (int s = 0; s < on->sites; s++)
            if (s != on->site)
                TRY(status, requests_send(&some, on, here, on->local_size * length, handle.byte,
                                          leader(on, s, -1), TAG_ALLGATHER));
        TRY(status, requests_wait(&some));
    }
    if (on->local_size > 1)
        TRY(status, intra_site_bcast(on, room, (int)(on->size * length), handle.byte, 0));
    requests_free(&some, status);
    return status;
}
