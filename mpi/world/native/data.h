/* A program's buffer as bytes, in the form on which two MPIs on the same kind of CPU agree. */
#ifndef CAUSEWAY_WORLD_DATA_H
#define CAUSEWAY_WORLD_DATA_H

#include "common/binding/mpi_calls.h"

#include <stdint.h>

struct shape {
    /* Bytes of one element, without holes. */
    int64_t bytes;
    /* Whether the elements are in memory as they are packed. */
    int is_plain;
};

/* Returns an MPI error code. */
int data_shape(MPI_Datatype type, struct shape *shape);
/* Whether the type is a named one, which no program can free. */
int data_is_named(MPI_Datatype type);

/* Packs all elements, into count * shape->bytes bytes. */
int data_pack(const void *buffer, int count, MPI_Datatype type, const struct shape *shape, char *packed);
/* Unpacks `bytes` bytes, which may end inside an element. */
int data_unpack(const char *packed, int64_t bytes, void *buffer, MPI_Datatype type,
                const struct shape *shape);

/* A hash of how this MPI packs the named types, for sites to compare. */
uint64_t data_layout(void);

#endif
