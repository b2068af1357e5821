/* Receives that a far or a native message may match: the site's MPI is asked for the native ones. */
#ifndef CAUSEWAY_WORLD_WILDCARD_H
#define CAUSEWAY_WORLD_WILDCARD_H

/* Looks for messages, and finishes receives whose messages have arrived. Returns how much was done. */
int wildcard_look(void);
/* Whether the last wildcard_look has let the MPI make progress, by asking for messages from other processes
 * of this site. */
int wildcard_asks(void);

#endif
