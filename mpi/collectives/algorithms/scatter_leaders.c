/* R/2 + n s/B, one message to each other site, whose leader scatters it there. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

int scatter_leaders(struct hierarchy *on, const char *room, int64_t length, char *into, int root)
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    int from = leader(on, on->site, root);
    const char *here = NULL;
    char *memory = NULL;
    if (on->rank == root) {
        here = room + on->first[on->site] * length;
        for (int s = 0; s < on->sites; s++)
            if (s != on->site)
                TRY(status, requests_send(&some, on, room + on->first[s] * length, site_size(on, s) * length,
                                          handle.byte, leader(on, s, root), TAG_SCATTER));
    } else if (on->rank == from) {
        if (!(here = memory = malloc(on->local_size * length + 1)))
            status = MPI_ERR_NO_MEM;
        TRY(status,
            requests_receive(&some, on, memory, on->local_size * length, handle.byte, root, TAG_SCATTER));
        TRY(status, requests_wait(&some));
    }
    TRY(status, intra_site_scatter(on, here, length, into, on->local_rank_of[from]));
    requests_free(&some, status);
    free(memory);
    return status;
}
