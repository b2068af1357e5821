#define _GNU_SOURCE
#include "collectives/topology/agreement.h"

#include "collectives/binding/fatal.h"
#include "collectives/select/choice.h"
#include "collectives/topology/sites.h"

#include <stdio.h>
#include <stdlib.h>

static struct settings own;
static char said[1024];
static int is_right;

/* FNV-1a, byte by byte (draft-eastlake-fnv). */
static uint64_t add(uint64_t digest, unsigned char byte) { return (digest ^ byte) * 0x100000001b3; }

void agreement_prepare(unsigned char digest[8])
{
    uint64_t sum = 0xcbf29ce484222325;
    is_right = settings_read(&own, said, sizeof said);
    const int64_t *numbers = (const int64_t *)&own;
    for (size_t i = 0; i < sizeof own / sizeof *numbers; i++)
        for (int shift = 0; shift < 64; shift += 8)
            sum = add(sum, (unsigned char)((uint64_t)numbers[i] >> shift));
    for (const char *at = settings_links(); *at; at++)
        sum = add(sum, (unsigned char)*at);
    for (int i = 0; i < 8; i++)
        digest[i] = (unsigned char)(sum >> (8 * i));
}

/* Broadcasts an array of 8-byte numbers from rank 0 to all ranks. */
static int tell(void *numbers, size_t bytes)
{
    return real.Bcast(numbers, (int)(bytes / sizeof(int64_t)), handle.types[TYPE_LONG], 0, handle.comm_world);
}

/* Reads the links between sites. Links that are not listed are assumed to be as bad as the longest and the
 * slowest. The variable is set for every process or for none. */
static struct link *links_told(int rank, const struct costs *costs, int are_alike)
{
    int count = sites_count * sites_count;
    char error[256];
    if (sites_count < 3 || !*settings_links())
        return NULL;
    struct link *links = must_have(malloc(count * sizeof *links));
    for (int i = 0; i < count; i++)
        links[i] = (struct link){costs->rtt, costs->rate, 0};
    if ((rank == 0 || are_alike) &&
        !links_parse(settings_links(), sites_count, sites_name, links, error, sizeof error) && rank == 0)
        fprintf(stderr, "causeway collectives: CAUSEWAY_COLLECTIVES_LINKS: %s; all are taken to be alike\n",
                error);
    if (are_alike || tell(links, (size_t)count * sizeof *links) == MPI_SUCCESS)
        return links;
    free(links);
    return NULL;
}

void agreement_reach(int are_alike)
{
    int rank = 0, status = real.Comm_rank(handle.comm_world, &rank);
    if (status == MPI_SUCCESS && rank == 0 && *said)
        fprintf(stderr, "causeway collectives: %s%s\n", said, is_right ? "" : "; no rule of it is used");
    if (!are_alike)
        TRY(status, tell(&own, sizeof own));
    if (status == MPI_SUCCESS)
        choice_use(&own, links_told(rank, &own.costs, are_alike), sites_count);
}
