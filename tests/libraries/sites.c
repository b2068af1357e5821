/* A program that asks for its site and its group gets them: by MPI_Comm_split_type a communicator of each, by
 * the info object of MPI_COMM_WORLD their names, by its attributes the colours of all ranks. With nothing to
 * say, none of the keys is there.
 *
 * sites [--groups GROUP_OF_RANK,...] RANKS_OF_SITE...: sizes of the sites, in the order of ranks, or none:
 * nobody knows any; and groups, "-" for none. */
#define _GNU_SOURCE
#include "../../mpi/include/causeway_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#define MPI_COMM_TYPE_HW_GUIDED 13
#endif
#if defined(MPI_COMM_TYPE_RESOURCE_GUIDED) || defined(STANDARD_ABI)
#define WITH_RESOURCE_GUIDED
#endif

enum { NAME_BYTES = 64 };

static int rank, size, wrong;

#define CHECK(holds, ...)                       \
    do {                                        \
        if (!(holds)) {                         \
            fprintf(stderr, "rank %d: ", rank); \
            fprintf(stderr, __VA_ARGS__);       \
            fputc('\n', stderr);                \
            wrong = 1;                          \
        }                                       \
    } while (0)

/* Returns the value of a key of the info object of MPI_COMM_WORLD. False where it is not there. */
static int told(const char *key, char value[NAME_BYTES])
{
    MPI_Info info;
    int is_there, bytes = NAME_BYTES;
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
#if MPI_VERSION >= 4
    MPI_Info_get_string(info, key, &bytes, value, &is_there);
#else
    MPI_Info_get(info, key, bytes - 1, value, &is_there);
#endif
    MPI_Info_free(&info);
    return is_there;
}

static MPI_Comm split(MPI_Comm comm, int type, const char *resource)
{
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", resource);
    /* Keys turn the order round. */
    MPI_Comm_split_type(comm, type, -rank, info, &part);
    MPI_Info_free(&info);
    return part;
}

/* Checks that the part has those ranks of MPI_COMM_WORLD for which `number` is this rank's, in falling order;
 * that there is none where it is below 0. */
static void check_part(MPI_Comm part, const int *number, const char *resource)
{
    int members = -1, own = -1, expected = 0, after = 0;
    for (int i = 0; i < size; i++) {
        expected += number[i] == number[rank];
        after += number[i] == number[rank] && i > rank;
    }
    if (number[rank] < 0) {
        CHECK(part == MPI_COMM_NULL, "%s: a communicator, in no group", resource);
        return;
    }
    if (part != MPI_COMM_NULL) {
        MPI_Comm_size(part, &members);
        MPI_Comm_rank(part, &own);
        MPI_Comm_free(&part);
    }
    CHECK(members == expected && own == after, "%s has %d ranks, and this is %d of them", resource, members,
          own);
}

static void check_parts(const int *number, const char *resource)
{
    MPI_Comm turned;
    check_part(split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, resource), number, resource);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    check_part(split(turned, MPI_COMM_TYPE_HW_GUIDED, resource), number, resource);
    MPI_Comm_free(&turned);
#ifdef WITH_RESOURCE_GUIDED
    check_part(split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, resource), number, resource);
#endif
}

/* The ranks of a site must say the same name, and those of two sites different ones. */
static void check_site_names(const int *site, int sites)
{
    char value[NAME_BYTES] = "", *all = calloc(size, NAME_BYTES);
    CHECK(told(CAUSEWAY_INFO_SITES, value) && atoi(value) == sites, "%s sites are told of, not %d", value,
          sites);
    memset(value, 0, sizeof value);
    CHECK(told(CAUSEWAY_INFO_SITE, value) && *value, "no site is told");
    MPI_Allgather(value, NAME_BYTES, MPI_BYTE, all, NAME_BYTES, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(!strcmp(value, &all[i * NAME_BYTES]) == (site[i] == site[rank]), "site %s, and rank %d says %s",
              value, i, &all[i * NAME_BYTES]);
    free(all);
}

static void check_colors(MPI_Comm comm, const int *site)
{
    char value[NAME_BYTES], *hosts = calloc(size, NAME_BYTES), own[NAME_BYTES] = "";
    int *depths = NULL, **colors = NULL, has_depths = 0, has_colors = 0;
    gethostname(own, sizeof own - 1);
    MPI_Allgather(own, NAME_BYTES, MPI_BYTE, hosts, NAME_BYTES, MPI_BYTE, MPI_COMM_WORLD);
    if (told(CAUSEWAY_INFO_DEPTHS_KEYVAL, value))
        MPI_Comm_get_attr(comm, atoi(value), &depths, &has_depths);
    if (told(CAUSEWAY_INFO_COLORS_KEYVAL, value))
        MPI_Comm_get_attr(comm, atoi(value), &colors, &has_colors);
    CHECK(has_depths && has_colors, "no depths or no colours");
    for (int i = 0; has_depths && has_colors && i < size; i++) {
        CHECK(depths[i] == CAUSEWAY_LEVEL_HOST + 1, "rank %d has depth %d", i, depths[i]);
        CHECK(colors[i][CAUSEWAY_LEVEL_GRID] == 0, "rank %d is on another grid", i);
        CHECK(colors[i][CAUSEWAY_LEVEL_SITE] == site[i], "rank %d has site %d", i,
              colors[i][CAUSEWAY_LEVEL_SITE]);
        int same = site[i] == site[rank] && !strcmp(own, &hosts[i * NAME_BYTES]);
        CHECK((colors[i][CAUSEWAY_LEVEL_HOST] == colors[rank][CAUSEWAY_LEVEL_HOST]) == same,
              "rank %d has host %d", i, colors[i][CAUSEWAY_LEVEL_HOST]);
    }
    free(hosts);
}

static void check_sites(const int *site, int sites)
{
    MPI_Comm copy;
    check_parts(site, CAUSEWAY_RESOURCE_SITE);
    /* Where all are at one site, the MPI's own clusters are meant. */
    if (sites > 1)
        check_parts(site, "cluster");
    check_site_names(site, sites);
    check_colors(MPI_COMM_WORLD, site);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    check_colors(copy, site);
    MPI_Comm_free(&copy);
}

static void check_no_sites(void)
{
    const char *keys[] = {CAUSEWAY_INFO_SITE, CAUSEWAY_INFO_SITES, CAUSEWAY_INFO_DEPTHS_KEYVAL,
                          CAUSEWAY_INFO_COLORS_KEYVAL};
    char value[NAME_BYTES];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CHECK(!told(keys[i], value), "%s is there", keys[i]);
}

/* `list` names the group of each rank; a group's number is its first rank. */
static void check_groups(const char *list)
{
    char value[NAME_BYTES] = "", (*names)[NAME_BYTES] = calloc(size, NAME_BYTES);
    int *number = calloc(size, sizeof *number);
    for (int i = 0; i < size; i++, list += strcspn(list, ",") + 1) {
        snprintf(names[i], NAME_BYTES, "%.*s", (int)strcspn(list, ","), list);
        while (strcmp(names[number[i]], names[i]) != 0)
            number[i]++;
        if (!strcmp(names[i], "-"))
            number[i] = -1;
    }
    int is_told = told(CAUSEWAY_INFO_GROUP, value);
    CHECK(is_told == (number[rank] >= 0), "a group is told to who is in none, or none");
    CHECK(!is_told || !strcmp(value, names[rank]), "group %s, not %s", value, names[rank]);
    check_parts(number, CAUSEWAY_RESOURCE_GROUP);
    free(number);
    free(names);
}

int main(int argc, char **argv)
{
    char value[NAME_BYTES];
    const char *groups = NULL;
    int any, first = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && !strcmp(argv[1], "--groups")) {
        groups = argv[2];
        first = 3;
    }
    int *site = calloc(size, sizeof *site);
    for (int i = 0, before = 0, at = first; at < argc && i < size; i++) {
        while (at < argc && i >= before + atoi(argv[at]))
            before += atoi(argv[at++]);
        site[i] = at - first;
    }
    if (first < argc)
        check_sites(site, argc - first);
    else
        check_no_sites();
    if (groups)
        check_groups(groups);
    else
        CHECK(!told(CAUSEWAY_INFO_GROUP, value), "group %s without a profile", value);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sites: %s\n", any ? "WRONG" : "all right");
    free(site);
    MPI_Finalize();
    return any;
}
