#define _GNU_SOURCE
#include "collectives/topology/sites.h"

#include "collectives/binding/fatal.h"
#include "collectives/select/settings.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sites_count = 1;

static int learnt;

struct place {
    char site[SITE_NAME_BYTES];
    /* The site is part of a place, because two sites may have hosts of the same name. */
    char host[SITE_NAME_BYTES];
};

/* What each rank tells all others. */
struct told {
    struct place place;
    struct word word;
};

/* The site and the host of each rank; NULL if sites are not known. */
static int *site_of_rank, *host_of_rank;

/* One place of each site, in the order of the sites' numbers. */
static struct place *site_places;

/* A function of the shim, which knows the site of its process (crates/shim). Writes the site's name, or an
 * empty string. */
typedef void (*own_site_fn)(char *name, size_t bytes);

static int from_list(const char *list, int rank, char *name)
{
    const char *at = list;
    for (int i = 0; i < rank; i++) {
        const char *comma = strchr(at, ',');
        /* A list that is too short is repeated: "a,b" places ranks alternately. */
        at = comma ? comma + 1 : list;
    }
    size_t length = strcspn(at, ",");
    if (length >= SITE_NAME_BYTES)
        length = SITE_NAME_BYTES - 1;
    memcpy(name, at, length);
    return strchr(list, ',') != NULL;
}

/* In a world of several MPIs, each process is told its site: 2,SITE,IP:PORT. Not all of these processes have
 * the map of the grid under its usual name. */
static int from_world(const char *world, char *name)
{
    const char *comma = strchr(world, ',');
    return comma && from_list(comma + 1, 0, name);
}

/* Returns whether the job may have several sites, which is the same at every rank. Writes the name of this
 * process's site to `name`, or leaves it empty if the process does not know it. */
static int own_site(int rank, char *name)
{
    if (*settings_sites())
        return from_list(settings_sites(), rank, name);
    if (mpi_calls_are_worlds())
        return from_world(settings_world(), name);
    if (!*settings_grid_map())
        return 0;
    own_site_fn ask = (own_site_fn)dlsym(RTLD_DEFAULT, "causeway_own_site");
    if (ask)
        ask(name, SITE_NAME_BYTES);
    return 1;
}

/* Gives equal places the same number, in the order in which they first occur, and moves each distinct place
 * to the index that is its number. Returns the number of distinct places. */
static int number_places(struct place *all, int size, int *number)
{
    int count = 0;
    for (int i = 0; i < size; i++) {
        /* Searches backwards, because most ranks are at the same place as the previous rank. */
        int n = count - 1;
        while (n >= 0 && memcmp(&all[n], &all[i], sizeof *all) != 0)
            n--;
        number[i] = n < 0 ? count : n;
        if (n < 0)
            memmove(&all[count++], &all[i], sizeof *all);
    }
    return count;
}

/* Numbers the sites and hosts of all ranks. Overwrites and keeps `all`. */
static void number_all(struct place *all, int size)
{
    int *site_of_host = must_have(calloc(size, sizeof(int)));
    host_of_rank = must_have(calloc(size, sizeof(int)));
    site_of_rank = must_have(calloc(size, sizeof(int)));
    int hosts = number_places(all, size, host_of_rank);
    for (int i = 0; i < hosts; i++)
        memset(all[i].host, 0, sizeof all[i].host);
    sites_count = number_places(all, hosts, site_of_host);
    for (int i = 0; i < size; i++)
        site_of_rank[i] = site_of_host[host_of_rank[i]];
    free(site_of_host);
    site_places = all;
}

static void read_words(const struct told *told, int size, struct words *all)
{
    *all = (struct words){.were_told = 1, .all_have_hooks = 1, .settings_are_alike = 1};
    for (int i = 0; i < size; i++) {
        const struct word *word = &told[i].word;
        all->all_have_hooks &= word->has_hooks;
        all->settings_are_alike &= memcmp(word->settings, told[0].word.settings, sizeof word->settings) == 0;
    }
}

void sites_learn(const struct word *own, struct words *all)
{
    struct told mine = {.word = *own};
    int size, rank;
    learnt = 1;
    *all = (struct words){0};
    if (real.Comm_size(handle.comm_world, &size) || real.Comm_rank(handle.comm_world, &rank))
        return;
    if (size < 2 || !own_site(rank, mine.place.site))
        return;
    gethostname(mine.place.host, sizeof mine.place.host - 1);
    struct told *told = must_have(calloc(size, sizeof *told));
    struct place *places = must_have(calloc(size, sizeof *places));
    int known = real.Allgather(&mine, sizeof mine, handle.byte, told, sizeof mine, handle.byte,
                               handle.comm_world) == MPI_SUCCESS;
    if (known)
        read_words(told, size, all);
    /* A rank that does not know its site could be anywhere, so all sites then count as unknown. */
    for (int i = 0; known && i < size; i++) {
        places[i] = told[i].place;
        known = places[i].site[0] != 0;
    }
    free(told);
    if (known)
        number_all(places, size);
    else
        free(places);
}

int sites_learnt(void) { return learnt; }

int sites_known(void) { return site_of_rank != NULL; }

int sites_of(int world_rank) { return site_of_rank ? site_of_rank[world_rank] : 0; }

int sites_host_of(int world_rank) { return host_of_rank[world_rank]; }

const char *sites_name(int site) { return site_places[site].site; }

int sites_of_group(MPI_Group group, int size, int *site)
{
    MPI_Group world;
    if (real.Comm_group(handle.comm_world, &world))
        return 0;
    int *ranks = must_have(malloc(2 * size * sizeof *ranks));
    int *world_ranks = ranks + size;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    int known = real.Group_translate_ranks(group, size, ranks, world, world_ranks) == MPI_SUCCESS;
    for (int i = 0; known && i < size; i++) {
        known = world_ranks[i] != MPI_UNDEFINED;
        if (known)
            site[i] = sites_of(world_ranks[i]);
    }
    free(ranks);
    real.Group_free(&world);
    return known;
}

void sites_forget(void)
{
    free(site_of_rank);
    free(host_of_rank);
    free(site_places);
    site_of_rank = host_of_rank = NULL;
    site_places = NULL;
    sites_count = 1;
    learnt = 0;
}
