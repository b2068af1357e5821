/* The groups of a job's ranks, as defined in its profile (causeway run --groups). */
#ifndef CAUSEWAY_GROUPS_H
#define CAUSEWAY_GROUPS_H

#define GROUP_NAME_BYTES 64

/* Whether the job has groups; the answer is the same at every rank. */
int groups_are_named(void);

/* Returns the number of this process's group, counted from 0, and its name; -1 if it is in none. Call it
 * after sites_learn. */
int groups_own(char name[GROUP_NAME_BYTES]);

#endif
