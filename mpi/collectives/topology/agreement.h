/* Makes all ranks decide alike on algorithms. */
#ifndef CAUSEWAY_AGREEMENT_H
#define CAUSEWAY_AGREEMENT_H

/* Reads the settings of this rank, and makes a digest of them that is alike where they are, whatever the
 * processor. */
void agreement_prepare(unsigned char digest[8]);

/* Has rank 0's settings hold for all; where all have the same, nothing needs to be sent. Every rank calls it
 * once, after agreement_prepare and sites_learn. */
void agreement_reach(int are_alike);

#endif
