#include "topology.h"

#include "../../../mpi/include/causeway_mpi.h"
#include "../../common/places.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* Adds a level of the MPI's places to rank 0's tree. */
static void add_places(MPI_Comm comm, struct workers_tree *tree, int level)
{
    int *found = workers_new(sizeof(int) * tree->ranks), count = places_colors(comm, level, found);
    if (count < 0)
        workers_no_memory(sizeof(int) * tree->ranks);
    if (count > 0)
        workers_tree_level(tree, found);
    free(found);
}

/* Ranks of one name are a group of the job's profile, and so are those without. */
static void add_named(MPI_Comm comm, struct workers_tree *tree, int rank)
{
    char own[PLACES_TEXT_BYTES], *names = workers_new((size_t)PLACES_TEXT_BYTES * tree->ranks);
    int *found = workers_new(sizeof(int) * tree->ranks);
    places_told(CAUSEWAY_INFO_GROUP, own);
    MPI_Gather(own, PLACES_TEXT_BYTES, MPI_CHAR, names, PLACES_TEXT_BYTES, MPI_CHAR, 0, comm);
    for (int i = 0; i < tree->ranks; i++)
        while (memcmp(names + (size_t)found[i] * PLACES_TEXT_BYTES, names + (size_t)i * PLACES_TEXT_BYTES,
                      PLACES_TEXT_BYTES) != 0)
            found[i]++;
    if (rank == 0)
        workers_tree_level(tree, found);
    free(names);
    free(found);
}

void workers_topology_read(MPI_Comm comm, const struct workers_settings *settings, struct workers_tree *tree)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0 && settings->has_sites)
        add_places(comm, tree, CAUSEWAY_LEVEL_SITE);
    if (settings->has_groups)
        add_named(comm, tree, rank);
    if (rank == 0 && settings->has_hosts)
        add_places(comm, tree, CAUSEWAY_LEVEL_HOST);
}
