/* Where sites have unlike processors: in what the forms of C's types differ, and where numbers of such a type
 * are in data of any datatype. Sizes are the same everywhere (world/native/layout.c), and so is the order of
 * bytes. */
#ifndef CAUSEWAY_FORMS_H
#define CAUSEWAY_FORMS_H

#include "common/binding/mpi_calls.h"
#include "common/forms/long_double.h"

#include <stdint.h>

/* A processor's forms in a byte, as sites tell each other: the form of long double, and bits. */
enum { FORMS_LONG_DOUBLE = 0x0f, FORMS_UNSIGNED_CHAR = 0x10, FORMS_UNSIGNED_WCHAR = 0x20 };
uint8_t forms_own(void);

/* Where long doubles are in the packed bytes of one element. */
struct form_map;

/* Makes the map of a type; NULL where it has no long doubles. Returns an MPI's code. */
int form_map_make(MPI_Datatype type, struct form_map **map);
void form_map_free(struct form_map *map);
/* Converts the numbers in so many packed bytes of elements; one that is cut off at the end is left. */
void form_map_convert(const struct form_map *map, char *packed, int64_t bytes,
                      void (*convert)(unsigned char number[LONG_DOUBLE_BYTES]));

/* What converts a number of one form into the other; NULL between like ones. */
void (*forms_converter(uint8_t from, uint8_t to))(unsigned char number[LONG_DOUBLE_BYTES]);

/* Whether the type is a named one of long doubles. */
int forms_concern(MPI_Datatype named);

#endif
