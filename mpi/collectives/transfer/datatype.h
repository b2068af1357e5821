/* Buffers of any datatype: describes one element, allocates memory for several, and packs them into bytes. */
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
    /* True if elements in memory are already in the form in which they are sent, so that nothing is
     * packed. */
    int is_contiguous;
};

/* Describes a datatype. Returns false if it is not valid. Other ranks may describe the same bytes by other
 * datatypes, so a choice that all ranks must share cannot depend on it. */
int shape_of(MPI_Datatype type, struct shape *shape);

/* Bytes of data in `count` elements; INT64_MAX on overflow. */
int64_t shape_bytes(const struct shape *shape, int64_t count);

/* Whether the datatype is a predefined (named) one. Also true if it is not valid. */
int type_is_named(MPI_Datatype type);

/* A buffer's contents as bytes. */
struct bytes {
    char *at;
    int64_t length;
    /* The allocated memory that `at` points to; NULL if `at` is the buffer itself. */
    char *owned;
};

/* Packs a buffer's elements. If the type is contiguous, the bytes are the buffer itself. */
int bytes_pack(const void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes);
/* Allocates room for bytes to be received. If the type is contiguous, the room is the buffer itself. */
int bytes_room(void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes);
/* Unpacks received bytes into the buffer; does nothing if they are already there. */
int bytes_unpack(const struct bytes *bytes, void *buffer, int64_t count, const struct shape *shape);
void bytes_free(struct bytes *bytes);

/* unpack() unpacks `length` bytes into `count` elements of a buffer; pack() packs the elements into bytes. */
int unpack(const char *from, int64_t length, void *buffer, int64_t count, const struct shape *shape);
int pack(const void *buffer, int64_t count, const struct shape *shape, char *to, int64_t length);

/* Allocates memory for `count` elements. *origin is the address to pass to MPI. Returns the pointer to free,
 * or NULL if memory is exhausted. */
void *elements(int64_t count, const struct shape *shape, void **origin);

/* Copies elements of any type from one buffer to another. */
int elements_copy(const void *from, void *into, int count, const struct shape *shape);

static inline void *element_at(const void *origin, int64_t index, const struct shape *shape)
{
    return (char *)origin + index * shape->extent;
}

#endif
