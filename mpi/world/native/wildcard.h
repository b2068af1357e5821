/* Receives that either world may match: the site's MPI is asked for their messages. */
#ifndef CAUSEWAY_WORLD_WILDCARD_H
#define CAUSEWAY_WORLD_WILDCARD_H

/* Looks for messages, and finishes those that have come. Returns how much was done. */
int wildcard_look(void);
/* Whether the last wildcard_look has let the MPI go on: it has asked for messages of others in this site. */
int wildcard_asks(void);

#endif
