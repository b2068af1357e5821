/* Groups with processes of several sites. The handle of each is a native group of one process, made for it; a
 * record has the list of members. Groups within the site are native. */
#ifndef CAUSEWAY_WORLD_GROUPS_H
#define CAUSEWAY_WORLD_GROUPS_H

#include "world/handles/ours.h"

struct group {
    MPI_Group name;
    int size;
    int32_t *numbers;
};

/* Returns NULL for a native group. */
struct group *group_find(MPI_Group name);

/* Lists any group's members by their numbers in the world, in memory that the caller frees. Returns NULL if
 * it cannot. Processes outside this world, children for example, are -1. */
int32_t *group_list(MPI_Group group, int *size);

/* Makes a group of these processes, a native one if all are at this site. Returns an MPI error code. */
int group_make(int size, const int32_t *numbers, MPI_Group *group);

/* Makes a native group of those of them that are at this site. */
int group_make_here(int size, const int32_t *numbers, MPI_Group *group);

int group_free(struct group *group);

#endif
