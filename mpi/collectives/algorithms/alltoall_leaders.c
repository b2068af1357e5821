/* R/2 + n n s/B, S * (S - 1) messages, and twice the data inside a site: one rank of each site gathers what
 * its site has for each other site, exchanges it, and scatters what it receives. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/intra_site.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>
#include <string.h>

int alltoall_leaders(struct hierarchy *on, const char *from, int64_t length, char *into)
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    int here = on->local_size, all = on->size;
    int64_t row = all * length;
    char *memory = NULL, *out = NULL, *rows = NULL;
    if (on->local_rank == 0) {
        rows = memory = malloc(2 * here * row + 1);
        out = malloc(2 * here * row + 1);
        if (!memory || !out)
            status = MPI_ERR_NO_MEM;
    }
    TRY(status, intra_site_gather(on, from, row, rows, 0));
    if (on->local_rank == 0 && status == MPI_SUCCESS) {
        char *in = out + here * row;
        char *to = out;
        for (int s = 0; s < on->sites; s++) {
            int there = site_size(on, s);
            /* A block holds what each rank of this site has for the ranks of site s. This site's own block
             * goes directly to where the blocks from other sites arrive. */
            char *block = s == on->site ? in + here * on->first[s] * length : to;
            for (int r = 0; r < here; r++)
                memcpy(block + r * there * length, rows + r * row + on->first[s] * length, there * length);
            if (s != on->site) {
                TRY(status, requests_receive(&some, on, in + here * on->first[s] * length,
                                             (int64_t)there * here * length, handle.byte, leader(on, s, -1),
                                             TAG_ALLTOALL));
                TRY(status, requests_send(&some, on, block, (int64_t)here * there * length, handle.byte,
                                          leader(on, s, -1), TAG_ALLTOALL));
                to += here * there * length;
            }
        }
        TRY(status, requests_wait(&some));
        /* The block from site s holds, for each rank there, what it sends to each rank of this site. */
        char *sorted = rows + here * row;
        for (int s = 0; s < on->sites; s++)
            for (int m = 0; m < site_size(on, s); m++)
                for (int r = 0; r < here; r++)
                    memcpy(sorted + r * row + (on->first[s] + m) * length,
                           in + here * on->first[s] * length + (m * here + r) * length, length);
        rows = sorted;
    }
    TRY(status, intra_site_scatter(on, rows, row, into, 0));
    requests_free(&some, status);
    free(memory);
    free(out);
    return status;
}
