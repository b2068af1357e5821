#include "topology.h"

#include "../../../mpi/include/causeway_mpi.h"
#include "../../common/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sizes with commas between them, which add up to the number of ranks. */
static int from_list(const char *list, int ranks, int *site)
{
    int found = 0, rank = 0;
    for (const char *at = list;; at++) {
        char *end;
        errno = 0;
        long size = strtol(at, &end, 10);
        if (errno || end == at || strchr(" \t\n+", *at) || size < 1 || size > ranks - rank)
            return 0;
        for (long i = 0; i < size; i++)
            site[rank++] = found;
        found++;
        if (!*end)
            return rank == ranks ? found : 0;
        if (*end != ',')
            return 0;
        at = end;
    }
}

int tsqr_topology_read(MPI_Comm comm, int *site)
{
    int ranks, found;
    const char *list = getenv("CAUSEWAY_TSQR_GROUPS");
    MPI_Comm_size(comm, &ranks);
    if (list && *list)
        return from_list(list, ranks, site);
    found = places_colors(comm, CAUSEWAY_LEVEL_SITE, site);
    if (found != 0)
        return found;
    memset(site, 0, sizeof(int) * (size_t)ranks);
    return 1;
}
