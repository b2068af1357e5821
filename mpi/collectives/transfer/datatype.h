/* Buffers of any datatype: describes one element, makes memory for several, and packs them into bytes. */
#ifndef CAUSEWAY_DATATYPE_H
#define CAUSEWAY_DATATYPE_H

#include "common/binding/mpi_calls.h"

#include <stdint.h>

/* One element of a datatype. */
struct shape {
    MPI_Datatype type;
    /* Bytes of data in one element. */
    MPI_Count size;
    MPI_Aint extent, true_lb, true_extent;
    /* True where elements lie in memory as they travel, so that nothing is packed. */
    int is_contiguous;
};

/* Describes a datatype. False where it is none. Other ranks may describe the same bytes by other datatypes,
 * so no choice that all must share depends on this one. */
int shape_of(MPI_Datatype type, struct shape *shape);

/* Bytes of data in `count` elements; INT64_MAX where they are more. */
int64_t shape_bytes(const struct shape *shape, int64_t count);

/* Whether the MPI has named the datatype itself. True where it is none. */
int type_is_named(MPI_Datatype type);

/* A buffer's contents as bytes. */
struct bytes {
    char *at;
    int64_t length;
    /* Memory that `at` points to; NULL where `at` is the buffer itself. */
    char *owned;
};

/* Packs a buffer's elements. Where the type is contiguous, the bytes are the buffer itself. */
int bytes_pack(const void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes);
/* Makes room for what arrives. Where the type is contiguous, the room is the buffer itself. */
int bytes_room(void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes);
/* Puts what has arrived into the buffer; does nothing where it is there already. */
int bytes_unpack(const struct bytes *bytes, void *buffer, int64_t count, const struct shape *shape);
void bytes_free(struct bytes *bytes);

/* The first puts `length` packed bytes into `count` elements of a buffer. The second packs them. */
int unpack(const char *from, int64_t length, void *buffer, int64_t count, const struct shape *shape);
int pack(const void *buffer, int64_t count, const struct shape *shape, char *to, int64_t length);

/* Makes memory for `count` elements. *origin is the address for MPI; free what is returned. NULL without
 * memory. */
void *elements(int64_t count, const struct shape *shape, void **origin);

/* Copies elements of any type from one place to another. */
int elements_copy(const void *from, void *into, int count, const struct shape *shape);

static inline void *element_at(const void *origin, int64_t index, const struct shape *shape)
{
    return (char *)origin + index * shape->extent;
}

#endif
