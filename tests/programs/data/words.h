/* Words: what both ends of an exchange agree on. A word is one element (a number, or a pair such as
 * MPI_DOUBLE_INT), or some unlike elements one after the other. Its signature is the same everywhere, its
 * places in memory are not. */
#ifndef CAUSEWAY_DATA_WORDS_H
#define CAUSEWAY_DATA_WORDS_H

#include "layout.h"

/* Words of one element that this MPI has: 0 to words_elements() - 1. Those of several follow, as many as
 * there are numbers. */
int words_elements(void);

/* Finds out what the MPI lacks, such as REAL*16, and says so on rank 0. */
void words_begin(int rank);

/* Numbers of words, those of several elements with them. */
int words_count(void);

/* One word as this end has it, committed. Unlike elements lie in gaps and orders of memory that `random`
 * chooses. */
struct layout words_make(int word, struct random *random);

/* Bytes of one word that travel. */
int words_bytes(int word);

#endif
