#include "world/native/unlike.h"

#include "common/binding/export.h"

#include <stddef.h>

static int is_unlike, signs_differ;

void unlike_begin(const struct world *world)
{
    for (uint32_t i = 0; i < world->site_count; i++) {
        is_unlike |= forms_converter(world->forms[i], world->forms[0]) != NULL;
        signs_differ |= (world->forms[i] ^ world->forms[0]) & FORMS_UNSIGNED_CHAR;
    }
}

/* The library of collectives sends data of many ranks as bytes: it asks. */
EXPORT int causeway_world_is_unlike(void) { return is_unlike; }

/* That library asks before it reduces by itself. */
EXPORT int causeway_world_forbids(MPI_Datatype type, MPI_Op op) { return unlike_forbids(type, op); }

int unlike_forbids(MPI_Datatype type, MPI_Op op)
{
    return signs_differ && type == handle.types[TYPE_CHAR] && (op == handle.most || op == handle.least);
}

int unlike_map(MPI_Datatype type, struct form_map **map)
{
    *map = NULL;
    return is_unlike ? form_map_make(type, map) : MPI_SUCCESS;
}

void unlike_convert(const struct world *world, uint32_t from, const struct form_map *map, char *packed,
                    int64_t bytes)
{
    uint8_t theirs = world->forms[world->processes[from].site];
    void (*convert)(unsigned char *) = forms_converter(theirs, forms_own());
    if (map && convert)
        form_map_convert(map, packed, bytes, convert);
}
