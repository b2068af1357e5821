#define _GNU_SOURCE
#include "sites.h"

#include "mpi_calls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int sites_count = 1;

static int *site_of_rank;
static char (*site_names)[SITE_NAME_BYTES];

/* A list of names by rank, for tests and for jobs that run without the shim. */
#define LIST "CAUSEWAY_COLLECTIVES_SITES"

/* Every process of a job has the same map of the grid (crates/wire), and the shim knows where its process is (crates/shim): it writes
 * the name, or an empty one. */
#define MAP "CAUSEWAY_GRID"
typedef void (*own_site_fn)(char *name, size_t bytes);

static int from_list(const char *list, int rank, char *name)
{
    const char *at = list;
    for (int i = 0; i < rank; i++) {
        const char *comma = strchr(at, ',');
        /* A list too short begins again: "a,b" places ranks in turn. */
        at = comma ? comma + 1 : list;
    }
    size_t length = strcspn(at, ",");
    if (length >= SITE_NAME_BYTES)
        length = SITE_NAME_BYTES - 1;
    memcpy(name, at, length);
    return strchr(list, ',') != NULL;
}

/* Whether the job may have several sites, which every rank answers alike, and the name of this process's site; empty
 * when the process does not know it. */
static int own_site(int rank, char *name)
{
    const char *list = getenv(LIST);
    if (list && *list)
        return from_list(list, rank, name);
    const char *map = getenv(MAP);
    if (!map || !*map)
        return 0;
    own_site_fn ask = (own_site_fn)dlsym(RTLD_DEFAULT, "causeway_own_site");
    if (ask)
        ask(name, SITE_NAME_BYTES);
    return 1;
}

void sites_learn(void)
{
    char own[SITE_NAME_BYTES] = "";
    int size, rank;
    if (real.Comm_size(handle.comm_world, &size) || real.Comm_rank(handle.comm_world, &rank))
        return;
    if (size < 2 || !own_site(rank, own))
        return;
    char(*all)[SITE_NAME_BYTES] = calloc(size, SITE_NAME_BYTES);
    int *site = calloc(size, sizeof *site);
    int status = real.Allgather(own, SITE_NAME_BYTES, handle.byte, all, SITE_NAME_BYTES, handle.byte, handle.comm_world);
    int count = 0;
    for (int i = 0; status == MPI_SUCCESS && i < size; i++) {
        /* A rank that does not know its site could be anywhere: then nothing is known. */
        if (!all[i][0]) {
            status = MPI_ERR_OTHER;
            break;
        }
        site[i] = 0;
        while (site[i] < count && strncmp(all[site[i]], all[i], SITE_NAME_BYTES) != 0)
            site[i]++;
        /* Names move to the front, each where its site's number is: never behind a rank not yet looked at. */
        if (site[i] == count)
            memmove(all[count++], all[i], SITE_NAME_BYTES);
    }
    if (status != MPI_SUCCESS || count < 2) {
        free(all);
        free(site);
        return;
    }
    site_names = all;
    site_of_rank = site;
    sites_count = count;
}

int sites_of(int world_rank) { return site_of_rank ? site_of_rank[world_rank] : 0; }

const char *sites_name(int site) { return site_names && site < sites_count ? site_names[site] : ""; }

void sites_forget(void)
{
    free(site_names);
    site_names = NULL;
    free(site_of_rank);
    site_of_rank = NULL;
    sites_count = 1;
}
