#define _GNU_SOURCE
#include "collectives/topology/agreement.h"

#include "collectives/binding/fatal.h"
#include "collectives/select/choice.h"
#include "collectives/topology/sites.h"

#include <stdio.h>
#include <stdlib.h>

/* Rank 0 tells all ranks what is made of numbers of 8 bytes. */
static int tell(void *numbers, size_t bytes)
{
    return real.Bcast(numbers, (int)(bytes / sizeof(int64_t)), handle.types[TYPE_LONG], 0, handle.comm_world);
}

/* Reads the ways between sites. Those that nothing is said of are taken for the longest and the slowest.
 * Either every process is told of some, or none is. */
static struct link *links_told(int rank, const struct costs *costs)
{
    int count = sites_count * sites_count;
    char error[256];
    if (sites_count < 3 || !*settings_links())
        return NULL;
    struct link *links = must_have(malloc(count * sizeof *links));
    for (int i = 0; i < count; i++)
        links[i] = (struct link){costs->rtt, costs->rate, 0};
    if (rank == 0 && !links_parse(settings_links(), sites_count, sites_name, links, error, sizeof error))
        fprintf(stderr, "causeway collectives: CAUSEWAY_COLLECTIVES_LINKS: %s; all are taken to be alike\n",
                error);
    if (tell(links, (size_t)count * sizeof *links) == MPI_SUCCESS)
        return links;
    free(links);
    return NULL;
}

void agreement_reach(void)
{
    struct settings settings;
    char said[1024] = "";
    int rank = 0, right = 1, status = real.Comm_rank(handle.comm_world, &rank);
    if (status == MPI_SUCCESS && rank == 0)
        right = settings_read(&settings, said, sizeof said);
    if (*said)
        fprintf(stderr, "causeway collectives: %s%s\n", said, right ? "" : "; no rule of it is used");
    TRY(status, tell(&settings, sizeof settings));
    if (status == MPI_SUCCESS)
        choice_use(&settings, links_told(rank, &settings.costs), sites_count);
}
