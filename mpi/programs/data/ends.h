/* One end of an exchange: a number of words, arranged in some way in memory of its own. */
#ifndef CAUSEWAY_DATA_ENDS_H
#define CAUSEWAY_DATA_ENDS_H

#include "memory.h"
#include "words.h"

/* MPICH before 5.0.2 writes more than MPI_MAX_ERROR_STRING bytes. */
#define ERROR_TEXT 8192

struct end {
    struct layout word, inner; /* what the layout is made of */
    struct layout layout;
    int instances; /* of `layout`; 0 if nothing has been made */
};

/* Makes an end of `words` words, laid out as `kind` says or, with LAYOUT_KINDS, as a random layout of a
 * random layout. */
void end_make(struct end *end, int word, int words, enum layout_kind kind, struct random *random);
void end_free(struct end *end);

#endif
