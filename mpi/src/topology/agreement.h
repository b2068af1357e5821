/* What decides on algorithms, alike at all ranks. */
#ifndef CAUSEWAY_AGREEMENT_H
#define CAUSEWAY_AGREEMENT_H

/* Reads the settings; rank 0's word holds for all. Called once, by every rank, after sites_learn. */
void agreement_reach(void);

#endif
