/* The groups of a job's ranks, as its profile has them (causeway run --groups). */
#ifndef CAUSEWAY_GROUPS_H
#define CAUSEWAY_GROUPS_H

#define GROUP_NAME_BYTES 64

/* Whether the job has groups; every rank answers alike. */
int groups_are_named(void);

/* The number of this process's group, counted from 0, and its name; -1 where it is in none. Sites must have
 * been learnt. */
int groups_own(char name[GROUP_NAME_BYTES]);

#endif
