/* Makes all ranks decide alike on algorithms. */
#ifndef CAUSEWAY_AGREEMENT_H
#define CAUSEWAY_AGREEMENT_H

/* Reads the settings; rank 0's hold for all. Every rank calls it once, after sites_learn. */
void agreement_reach(void);

#endif
