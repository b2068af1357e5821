/* The memory of one end of an exchange: a buffer with guards around and between what a datatype names. */
#ifndef CAUSEWAY_DATA_MEMORY_H
#define CAUSEWAY_DATA_MEMORY_H

#include "layout.h"

struct memory {
    unsigned char *bytes;
    size_t size;
    unsigned char *buffer; /* what is passed to MPI */
};

/* Allocates room for `instances` instances, filled with guard bytes. Aborts if memory is exhausted. */
struct memory memory_make(const struct layout *layout, int instances);
void memory_free(struct memory *memory);

/* Writes the numbers of a stream, from number `skip` on, to the places of a type map. */
void memory_fill(struct memory *memory, const struct layout *layout, int instances, uint64_t seed,
                 uint64_t skip);

/* Counts the bytes in which the memory differs from the numbers of the stream or, elsewhere, from the guard
 * byte. Reports the first on stderr. */
struct memory_view {
    const struct layout *layout;
    int instances; /* that have arrived */
    uint64_t seed;
    uint64_t skip; /* numbers of the stream to skip */
    ptrdiff_t at;  /* of the first instance, from the buffer passed to MPI */
};
long memory_compare(const struct memory *memory, const struct memory_view *views, int count,
                    const char *what);

#endif
