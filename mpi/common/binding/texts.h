/* Lengths of MPI's texts. Each MPI has its own for MPI_MAX_PROCESSOR_NAME and the like. A program is compiled
 * at each site for that site's MPI, so where it exchanges texts of that length between sites of unlike MPIs,
 * it says another number of characters at each. A text is shorter than any of these lengths. */
#ifndef CAUSEWAY_TEXTS_H
#define CAUSEWAY_TEXTS_H

#include <stdint.h>

/* Whether two unlike lengths are what two MPIs give a text of one kind; a program may have added one, or
 * taken one off, as Fortran's constants do. */
int texts_are_one(int64_t a, int64_t b);

/* Whether a length is one that some MPI gives a text. Ranks that name the lengths of one text find it alike.
 */
int texts_have_length(int64_t bytes);

/* Whether a length may be another one at another site: never in a job of one MPI. */
int texts_may_differ(int64_t bytes);

/* The greatest that any MPI has. */
enum { TEXTS_LONGEST = 8192 };

/* A text of `sent` characters has come into a buffer of `room`, as far as it holds them. Returns whether the
 * text is whole. One of Fortran, which ends with blanks, is filled up with these. */
int texts_settle(char *buffer, int64_t room, int64_t sent);

#endif
