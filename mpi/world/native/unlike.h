/* Worlds with processors that keep numbers in unlike forms: data goes between sites as it is packed, and the
 * receiver converts what came from an unlike site. */
#ifndef CAUSEWAY_WORLD_UNLIKE_H
#define CAUSEWAY_WORLD_UNLIKE_H

#include "common/forms/forms.h"
#include "world/world.h"

/* Looks whether the world is one, as soon as it is known. */
void unlike_begin(const struct world *world);

/* The map of a type whose numbers may have to be converted; NULL where nothing has. Returns an MPI's code. */
int unlike_map(MPI_Datatype type, struct form_map **map);

/* Converts so many packed bytes that came from this process. */
void unlike_convert(const struct world *world, uint32_t from, const struct form_map *map, char *packed,
                    int64_t bytes);

/* Whether sites would find unlike results: the greatest or least of characters that have a sign at one site
 * and none at another. MPI allows no such reduction, but MPIs do it. */
int unlike_forbids(MPI_Datatype type, MPI_Op op);

#endif
