/* The standard MPI calls by which a program asks for its site and group: MPI_Comm_split_type returns a
 * communicator of either, and the info object of MPI_COMM_WORLD contains their names. */
#define _GNU_SOURCE
#include "collectives/binding/fatal.h"
#include "collectives/topology/attributes.h"
#include "collectives/topology/groups.h"
#include "collectives/topology/sites.h"
#include "common/binding/export.h"
#include "include/causeway_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open MPI 4 and 5 have one binary interface, but Open MPI 4's headers do not define these constants. */
#if defined(OPEN_MPI)
enum { HW_GUIDED = 13, RESOURCE_GUIDED = 14 };
#elif defined(CAUSEWAY_STANDARD_ABI)
enum { HW_GUIDED = MPI_COMM_TYPE_HW_GUIDED, RESOURCE_GUIDED = MPI_COMM_TYPE_RESOURCE_GUIDED };
#else
enum { HW_GUIDED = 2, RESOURCE_GUIDED = 4 };
#endif

#define KEY "mpi_hw_resource_type"

/* Writes the name of the requested resource, or an empty string. */
static void resource_of(int type, MPI_Info info, char name[64])
{
    int there = 0, length = 64;
    name[0] = 0;
    if ((type != HW_GUIDED && type != RESOURCE_GUIDED) || info == handle.info_null)
        return;
#if defined(CAUSEWAY_STANDARD_ABI)
    int status = real.Info_get_string(info, KEY, &length, name, &there);
#else
    int status = real.Info_get(info, KEY, length - 1, name, &there);
#endif
    if (status != MPI_SUCCESS || !there)
        name[0] = 0;
}

/* Sites and groups belong to this MPI_COMM_WORLD. A communicator may have ranks from outside it. */
static int is_of_this_world(MPI_Comm comm)
{
    int inter, size;
    MPI_Group group;
    if (real.Comm_test_inter(comm, &inter) || inter || real.Comm_size(comm, &size) ||
        real.Comm_group(comm, &group))
        return 0;
    int *site = must_have(malloc(size * sizeof *site));
    int is = sites_of_group(group, size, site);
    free(site);
    real.Group_free(&group);
    return is;
}

/* Whether this library, not the MPI, serves the request. If so, *color is this process's part. */
static int is_ours(MPI_Comm comm, int type, MPI_Info info, int *color)
{
    char name[64], group[GROUP_NAME_BYTES];
    int rank;
    resource_of(type, info, name);
    /* In a job on one site, "cluster" may be a resource of the MPI's own. */
    int site = !strcmp(name, CAUSEWAY_RESOURCE_SITE) || (sites_count > 1 && !strcmp(name, "cluster"));
    if (!site && (strcmp(name, CAUSEWAY_RESOURCE_GROUP) != 0 || !groups_are_named()))
        return 0;
    if (!is_of_this_world(comm) || real.Comm_rank(handle.comm_world, &rank))
        return 0;
    *color = site ? sites_of(rank) : groups_own(group);
    if (*color < 0)
        *color = MPI_UNDEFINED;
    return 1;
}

EXPORT int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    int color;
    if (sites_learnt() && comm != handle.comm_null && is_ours(comm, type, info, &color))
        return real.Comm_split(comm, color, key, part);
    return PASS(Comm_split_type, comm, type, key, info, part);
}

BOTH(Comm_split_type);

static int tell_number(MPI_Info info, const char *key, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    return real.Info_set(info, key, text);
}

static int tell(MPI_Info info)
{
    int status = MPI_SUCCESS, rank, depths, colors;
    char group[GROUP_NAME_BYTES];
    if (sites_known()) {
        status = real.Comm_rank(handle.comm_world, &rank);
        if (!status)
            status = real.Info_set(info, CAUSEWAY_INFO_SITE, sites_name(sites_of(rank)));
        if (!status)
            status = tell_number(info, CAUSEWAY_INFO_SITES, sites_count);
    }
    if (!status && attributes_keyvals(&depths, &colors)) {
        status = tell_number(info, CAUSEWAY_INFO_DEPTHS_KEYVAL, depths);
        if (!status)
            status = tell_number(info, CAUSEWAY_INFO_COLORS_KEYVAL, colors);
    }
    if (!status && groups_own(group) >= 0)
        status = real.Info_set(info, CAUSEWAY_INFO_GROUP, group);
    return status;
}

EXPORT int MPI_Comm_get_info(MPI_Comm comm, MPI_Info *info)
{
    int status = PASS(Comm_get_info, comm, info);
    if (status == MPI_SUCCESS && sites_learnt() && comm == handle.comm_world)
        status = tell(*info);
    return status;
}

BOTH(Comm_get_info);
