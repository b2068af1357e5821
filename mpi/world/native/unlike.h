/* Worlds with processors that keep numbers in different forms: data travels between sites in packed form, and
 * the receiver converts data from an unlike site. */
#ifndef CAUSEWAY_WORLD_UNLIKE_H
#define CAUSEWAY_WORLD_UNLIKE_H

#include "common/forms/forms.h"
#include "world/world.h"

/* Finds out whether the world is of this kind; called as soon as the world is known. */
void unlike_begin(const struct world *world);

/* Makes the map of a type whose numbers may have to be converted; NULL if it has none. Returns an MPI error
 * code. */
int unlike_map(MPI_Datatype type, struct form_map **map);

/* Converts `bytes` packed bytes that came from process `from`. */
void unlike_convert(const struct world *world, uint32_t from, const struct form_map *map, char *packed,
                    int64_t bytes);

/* Whether sites would get different results: for the maximum or minimum of characters that are signed at one
 * site and unsigned at another. The standard allows no such reduction, but MPIs do it. */
int unlike_forbids(MPI_Datatype type, MPI_Op op);

#endif
