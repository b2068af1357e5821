/* The memory of one end of an exchange: a buffer with guards around and between what a datatype names. */
#ifndef CAUSEWAY_DATA_MEMORY_H
#define CAUSEWAY_DATA_MEMORY_H

#include "layout.h"

struct memory {
    unsigned char *bytes;
    size_t size;
    unsigned char *buffer; /* what MPI is told */
};

/* Makes room for so many instances, all of it guard bytes. Aborts without memory. */
struct memory memory_make(const struct layout *layout, int instances);
void memory_free(struct memory *memory);

/* Puts the numbers of a stream at the places of a type map, from its `skip`th number on. */
void memory_fill(struct memory *memory, const struct layout *layout, int instances, uint64_t seed,
                 uint64_t skip);

/* Counts in how many bytes the memory differs from the numbers of the stream, and from the guards elsewhere.
 * Reports the first on stderr. */
struct memory_view {
    const struct layout *layout;
    int instances; /* that have arrived */
    uint64_t seed;
    uint64_t skip; /* numbers of the stream that are not for here */
    ptrdiff_t at;  /* of the first instance, from what MPI was told */
};
long memory_compare(const struct memory *memory, const struct memory_view *views, int count,
                    const char *what);

#endif
