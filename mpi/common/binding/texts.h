/* Lengths of MPI's texts. Each MPI has its own values of MPI_MAX_PROCESSOR_NAME and similar constants. A
 * program is compiled at each site for that site's MPI, so if it exchanges texts of such a length between
 * sites with different MPIs, it passes a different number of characters at each. The texts themselves are
 * shorter than any of these lengths. */
#ifndef CAUSEWAY_TEXTS_H
#define CAUSEWAY_TEXTS_H

#include <stdint.h>

/* Whether two different lengths are the values that two MPIs give to one constant. A program may have added
 * or subtracted one, as Fortran's constants do. */
int texts_are_one(int64_t a, int64_t b);

/* Whether a length is some MPI's value of such a constant. Ranks that pass different lengths for one text get
 * the same answer. */
int texts_have_length(int64_t bytes);

/* Whether a length may be different at another site. False in a job with a single MPI. */
int texts_may_differ(int64_t bytes);

/* The greatest length in any MPI. */
enum { TEXTS_LONGEST = 8192 };

/* Checks a text of `sent` characters that was received into a buffer of `room` characters, as far as it fits.
 * Returns whether the text is complete. Pads a Fortran text, which ends with blanks, with more of them. */
int texts_settle(char *buffer, int64_t room, int64_t sent);

#endif
