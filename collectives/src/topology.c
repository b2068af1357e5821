/* A program that asks for the resources its ranks share, and names the site, gets one communicator for each. */
#define _GNU_SOURCE
#include "../include/causeway_mpi.h"
#include "enter.h"
#include "sites.h"

#include <string.h>

/* Headers of Open MPI 4 do not know what its successor, of the same binary interface, calls by these numbers. */
#if defined(OPEN_MPI)
enum { HW_GUIDED = 13, RESOURCE_GUIDED = 14 };
#elif defined(CAUSEWAY_STANDARD_ABI)
enum { HW_GUIDED = MPI_COMM_TYPE_HW_GUIDED, RESOURCE_GUIDED = MPI_COMM_TYPE_RESOURCE_GUIDED };
#else
enum { HW_GUIDED = 2, RESOURCE_GUIDED = 4 };
#endif

#define KEY "mpi_hw_resource_type"

/* Whether the ranks of a site are asked for. */
static int asks_for_site(int type, MPI_Info info)
{
    char value[64] = "";
    int there = 0, length = sizeof value;
    if ((type != HW_GUIDED && type != RESOURCE_GUIDED) || info == handle.info_null)
        return 0;
#if defined(CAUSEWAY_STANDARD_ABI)
    int status = real.Info_get_string(info, KEY, &length, value, &there);
#else
    int status = real.Info_get(info, KEY, length - 1, value, &there);
#endif
    if (status != MPI_SUCCESS || !there)
        return 0;
    /* Where there are no sites the MPI may know clusters of its own. */
    return !strcmp(value, CAUSEWAY_RESOURCE_SITE) || (sites_count > 1 && !strcmp(value, "cluster"));
}

EXPORT int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    int rank;
    if (mpi_calls_fit() && comm != handle.comm_null && asks_for_site(type, info)) {
        int status = real.Comm_rank(handle.comm_world, &rank);
        return status == MPI_SUCCESS ? real.Comm_split(comm, sites_of(rank), key, part) : status;
    }
    return PASS(Comm_split_type, comm, type, key, info, part);
}

BOTH(Comm_split_type);
