/* Receives that either world may match: the site's MPI is asked for their messages. */
#ifndef CAUSEWAY_WORLD_HERE_H
#define CAUSEWAY_WORLD_HERE_H

/* Looks for messages, and finishes those that have come. Returns how much was done. */
int here_look(void);
/* Whether the last look has let the MPI go on: it has asked for messages of others in this site. */
int here_asks(void);

#endif
