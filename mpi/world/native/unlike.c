#include "world/native/unlike.h"

#include "common/binding/export.h"

#include <stddef.h>

/* How the sites' forms of numbers differ, and whether their chars differ in sign. */
static uint8_t differ;
static int signs_differ;

void unlike_begin(const struct world *world)
{
    for (uint32_t i = 0; i < world->site_count; i++) {
        differ |= forms_differ(world->forms[i], world->forms[0]);
        signs_differ |= (world->forms[i] ^ world->forms[0]) & FORMS_UNSIGNED_CHAR;
    }
}

/* For the library of collectives, which sends data of many ranks as bytes. */
EXPORT int causeway_world_is_unlike(void) { return differ != 0; }

/* For the library of collectives, which asks before it does a reduction itself. */
EXPORT int causeway_world_forbids(MPI_Datatype type, MPI_Op op) { return unlike_forbids(type, op); }

int unlike_forbids(MPI_Datatype type, MPI_Op op)
{
    return signs_differ && type == handle.types[TYPE_CHAR] && (op == handle.most || op == handle.least);
}

int unlike_map(MPI_Datatype type, struct form_map **map) { return form_map_make(type, differ, map); }

void unlike_convert(const struct world *world, uint32_t from, const struct form_map *map, char *packed,
                    int64_t bytes)
{
    uint8_t theirs = world->forms[world->processes[from].site];
    if (map && forms_differ(theirs, forms_own()))
        form_map_convert(map, packed, bytes, theirs, forms_own());
}
