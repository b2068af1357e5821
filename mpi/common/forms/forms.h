/* For sites with unlike processors: how their forms of numbers differ, and where numbers are in data of any
 * datatype. Sizes are the same everywhere (world/native/layout.c). */
#ifndef CAUSEWAY_FORMS_H
#define CAUSEWAY_FORMS_H

#include "common/binding/mpi_calls.h"
#include "common/forms/long_double.h"

#include <stdint.h>

/* A processor's forms in one byte, which sites exchange: the form of long double, and flags. */
enum {
    FORMS_LONG_DOUBLE = 0x0f,
    FORMS_UNSIGNED_CHAR = 0x10,
    FORMS_UNSIGNED_WCHAR = 0x20,
    FORMS_BIG_ENDIAN = 0x40
};
uint8_t forms_own(void);

/* The forms in which data passes through ranks with different processors. They can hold every processor's
 * numbers. */
enum { FORMS_SHARED = LONG_DOUBLE_QUAD };

/* The differences between two forms for which numbers must be converted: FORMS_LONG_DOUBLE, FORMS_BIG_ENDIAN,
 * both, or 0. */
uint8_t forms_differ(uint8_t one, uint8_t other);

/* Where numbers are in the packed bytes of one element. */
struct form_map;

/* Makes the map of those numbers of a type that the differences `differ` affect; NULL if there are none.
 * Returns an MPI error code. */
int form_map_make(MPI_Datatype type, uint8_t differ, struct form_map **map);
void form_map_free(struct form_map *map);
/* Converts the numbers in `bytes` packed bytes of elements from one processor's forms to another's. Leaves a
 * number that is cut off at the end unchanged. */
void form_map_convert(const struct form_map *map, char *packed, int64_t bytes, uint8_t from, uint8_t to);

/* Whether a named type has numbers that the differences `differ` affect. */
int forms_concern(MPI_Datatype named, uint8_t differ);

#endif
