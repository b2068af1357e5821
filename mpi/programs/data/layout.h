/* Datatypes together with their type maps. MPI's functions build each datatype, and our own arithmetic builds
 * its type map (MPI 4.1, chapter 5). Received data is compared with the map, so an MPI that makes the same
 * mistake at both ends does not pass. */
#ifndef CAUSEWAY_DATA_LAYOUT_H
#define CAUSEWAY_DATA_LAYOUT_H

#include "random.h"
#include <mpi.h>
#include <stddef.h>

/* One number of a type map. MPIs may transfer all 16 bytes of an x87 long double, or only the 10 that it
 * uses. */
struct piece {
    ptrdiff_t at;
    unsigned char bytes;   /* that must arrive */
    unsigned char carried; /* that may be written */
};

/* One instance of a datatype; the next one begins `extent` bytes further on. */
struct layout {
    MPI_Datatype type;
    int is_ours; /* to free */
    struct piece *pieces;
    int count;
    int words; /* the units that both ends of an exchange count in, see words.h */
    ptrdiff_t lower, extent;
    int alignment;
    char name[96];
};

enum layout_kind {
    LAYOUT_PLAIN,
    LAYOUT_CONTIGUOUS,
    LAYOUT_VECTOR,
    LAYOUT_BYTE_VECTOR,
    LAYOUT_NEGATIVE_STRIDE,
    LAYOUT_TRANSPOSED,
    LAYOUT_INDEXED_BLOCK,
    LAYOUT_INDEXED,
    LAYOUT_BYTE_INDEXED,
    LAYOUT_BYTE_INDEXED_BLOCK,
    LAYOUT_STRUCT,
    LAYOUT_SUBARRAY,
    LAYOUT_DARRAY,
    LAYOUT_RESIZED,
    LAYOUT_NEGATIVE_LOWER_BOUND,
    LAYOUT_DUPLICATE,
    LAYOUT_KINDS
};

/* Arranges `instances` instances of a layout in the way of this kind. `random` determines their distances and
 * order. */
struct layout layout_make(enum layout_kind kind, const struct layout *of, int instances,
                          struct random *random);

/* A plain layout borrows its type from the layout of which it was made, which must outlive it and be
 * committed itself. */
void layout_commit(struct layout *layout);
void layout_free(struct layout *layout);

/* These are for words.c: the first makes an empty layout, the second adds one instance of another at a
 * displacement. */
struct layout layout_begin(int most_pieces, const char *name);
void layout_place(struct layout *layout, const struct layout *of, ptrdiff_t at);

#endif
