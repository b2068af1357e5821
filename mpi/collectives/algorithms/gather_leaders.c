/* R/2 + n s/B, one message from each other site: the ranks of a site gather their parts at one of them. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

int gather_leaders(struct hierarchy *on, const char *from, int64_t length, char *room, int root)
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    int to = leader(on, on->site, root);
    char *here = NULL, *memory = NULL;
    if (on->rank == root) {
        here = room + on->first[on->site] * length;
        for (int s = 0; s < on->sites; s++)
            if (s != on->site)
                TRY(status,
                    requests_receive(&some, on, room + on->first[s] * length, site_size(on, s) * length,
                                     handle.byte, leader(on, s, root), TAG_GATHER));
    } else if (on->rank == to && !(here = memory = malloc(on->local_size * length + 1))) {
        status = MPI_ERR_NO_MEM;
    }
    TRY(status, intra_site_gather(on, from, length, here, on->local_rank_of[to]));
    if (on->rank == to && on->rank != root)
        TRY(status, requests_send(&some, on, here, on->local_size * length, handle.byte, root, TAG_GATHER));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    free(memory);
    return status;
}
