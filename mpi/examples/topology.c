/* Adds up a number of every rank so that one message leaves each site: first within the site, then between
 * one rank of each. It runs as it is with any MPI; where nobody tells of sites there is one. docs/topology.md
 * explains the calls. */
#include "../include/causeway_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the value of a key of MPI_COMM_WORLD's info object, or `otherwise`. */
static const char *told(MPI_Info info, const char *key, char value[64], const char *otherwise)
{
    int is_there, bytes = 64;
#if MPI_VERSION >= 4
    MPI_Info_get_string(info, key, &bytes, value, &is_there);
#else
    MPI_Info_get(info, key, bytes - 1, value, &is_there);
#endif
    return is_there ? value : otherwise;
}

int main(int argc, char **argv)
{
    char site_name[64], sites[64], group[64], keyval[64];
    int rank, size, is_there = 0, color = 0, local_rank, sum = 0;
    int **colors;
    MPI_Info info;
    MPI_Comm site, leaders;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    printf("rank %d is at site %s of %s, in group %s\n", rank,
           told(info, CAUSEWAY_INFO_SITE, site_name, "here"), told(info, CAUSEWAY_INFO_SITES, sites, "1"),
           told(info, CAUSEWAY_INFO_GROUP, group, "none"));
    int key = atoi(told(info, CAUSEWAY_INFO_COLORS_KEYVAL, keyval, "-1"));
    MPI_Info_free(&info);
    if (key != -1)
        MPI_Comm_get_attr(MPI_COMM_WORLD, key, &colors, &is_there);
    if (is_there)
        color = colors[rank][CAUSEWAY_LEVEL_SITE];
    MPI_Comm_split(MPI_COMM_WORLD, color, rank, &site);
    MPI_Comm_rank(site, &local_rank);
    MPI_Comm_split(MPI_COMM_WORLD, local_rank == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, site);
    if (leaders != MPI_COMM_NULL) {
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, leaders);
        MPI_Comm_free(&leaders);
    }
    MPI_Bcast(&sum, 1, MPI_INT, 0, site);
    MPI_Comm_free(&site);
    if (rank == 0)
        printf("topology: the sum is %d: %s\n", sum, sum == size * (size - 1) / 2 ? "all right" : "WRONG");
    MPI_Finalize();
    return sum != size * (size - 1) / 2;
}
