/* What both ends of an exchange agree on. A word is one element (a number, or a pair such as MPI_DOUBLE_INT),
 * or several different elements one after the other. Its signature is the same everywhere; its layout in
 * memory is not. */
#ifndef CAUSEWAY_DATA_WORDS_H
#define CAUSEWAY_DATA_WORDS_H

#include "layout.h"

/* The number of words of one element that this MPI has: 0 to words_elements() - 1. The same number of words
 * of several elements follow. */
int words_elements(void);

/* Finds out which types the MPI lacks, such as REAL*16; rank 0 reports them. */
void words_begin(int rank);

/* The number of all words, including those of several elements. */
int words_count(void);

/* Makes one word as this end has it, committed. `random` chooses the gaps and the order in memory of a word's
 * different elements. */
struct layout words_make(int word, struct random *random);

/* The number of bytes of one word that are transferred. */
int words_bytes(int word);

#endif
