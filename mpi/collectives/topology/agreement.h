/* Makes all ranks choose the same algorithms. */
#ifndef CAUSEWAY_AGREEMENT_H
#define CAUSEWAY_AGREEMENT_H

/* Reads this rank's settings, and computes a digest that is the same for the same settings on any
 * processor. */
void agreement_prepare(unsigned char digest[8]);

/* Makes rank 0's settings hold for all ranks. If they are alike, nothing needs to be sent. Every rank calls
 * it once, after agreement_prepare and sites_learn. */
void agreement_reach(int are_alike);

#endif
