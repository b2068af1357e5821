/* What both ends of an exchange agree on. A word is one element (a number, or a pair such as MPI_DOUBLE_INT),
 * or some unlike elements one after the other. Its signature is the same everywhere, its places in memory are
 * not. */
#ifndef CAUSEWAY_DATA_WORDS_H
#define CAUSEWAY_DATA_WORDS_H

#include "layout.h"

/* How many words of one element this MPI has: 0 to words_elements() - 1. Those of several elements follow, as
 * many as there are numbers. */
int words_elements(void);

/* Finds out what the MPI lacks, such as REAL*16, and says so on rank 0. */
void words_begin(int rank);

/* How many words there are in all, those of several elements with them. */
int words_count(void);

/* Makes one word as this end has it, committed. Unlike elements lie in gaps and orders of memory that
 * `random` chooses. */
struct layout words_make(int word, struct random *random);

/* How many bytes of one word travel. */
int words_bytes(int word);

#endif
