/* Buffers of any datatype: what one element is, memory for some, and their bytes. */
#ifndef CAUSEWAY_DATATYPE_H
#define CAUSEWAY_DATATYPE_H

#include "topology/hierarchy.h"

#include <stdint.h>

/* Of a datatype. */
struct shape {
    MPI_Datatype type;
    /* Bytes of data in one element. */
    MPI_Count size;
    MPI_Aint extent, true_lb, true_extent;
    /* Elements lie in memory as they travel: no packing. */
    int is_contiguous;
};

/* False of what is no datatype. All other ranks may describe the same bytes by other datatypes: nothing is
 * decided by this one's own. */
int shape_of(MPI_Datatype type, struct shape *shape);

/* Of so many; as many as there can be, where it is more. */
int64_t shape_bytes(const struct shape *shape, int64_t count);

/* Whether it is one of the MPI's, or no datatype. */
int type_is_named(MPI_Datatype type);

/* A buffer's contents as bytes. */
struct bytes {
    char *at;
    int64_t length;
    /* What `at` is, when it is not the buffer itself. */
    char *owned;
};

/* Packs, unless the type is contiguous. `out` gets room for what arrives; bytes_unpack puts it into the
 * buffer. */
int bytes_pack(const void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm,
               struct bytes *bytes);
int bytes_room(void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes);
int bytes_unpack(const struct bytes *bytes, void *buffer, int64_t count, const struct shape *shape,
                 MPI_Comm comm);
void bytes_free(struct bytes *bytes);

/* Puts `length` packed bytes into `count` elements of a buffer. */
int unpack(const char *from, int64_t length, void *buffer, int64_t count, const struct shape *shape,
           MPI_Comm comm);
int pack(const void *buffer, int64_t count, const struct shape *shape, char *to, int64_t length,
         MPI_Comm comm);

/* Memory for so many elements; what to hand to MPI is *origin, what to free is returned. NULL without
 * memory. */
void *elements(int64_t count, const struct shape *shape, void **origin);

/* Elements of any type from one place to another. */
int elements_copy(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape);

static inline void *element_at(const void *origin, int64_t index, const struct shape *shape)
{
    return (char *)origin + index * shape->extent;
}

#endif
