/* How a world comes together, and what becomes of it: the connection of a site's native rank 0 to the
 * rendezvous in `causeway run --at`, which lasts from before MPI_Init returns until MPI_Finalize.
 *
 *     every process      rendezvous_wanted, rendezvous_listen
 *     native rank 0      rendezvous_world, with the addresses of all; its bytes then go to all of the site
 *     every process      message_read_world (message.h)
 *     native rank 0      rendezvous_done at the end, rendezvous_heard in between
 *     any process        rendezvous_abort
 *
 * Nothing here knows MPI. */
#ifndef CAUSEWAY_WORLD_RENDEZVOUS_H
#define CAUSEWAY_WORLD_RENDEZVOUS_H

#include "world/rendezvous/message.h"

/* Whether this process is of a world: 1, 0, or -1 with a sentence in `why` where it was told something that
 * it cannot use; it must end then. To be called first. */
int rendezvous_wanted(char *why, size_t room);
/* The own site's name, once rendezvous_wanted has returned 1. */
const char *rendezvous_site(void);

/* Opens this process's listener, non-blocking and closed by exec, and tells its address as other sites know
 * it. Returns the descriptor, or -1 with a sentence. */
int rendezvous_listen(struct sockaddr_storage *address, char *why, size_t room);

/* Tells the rendezvous who is here, and waits for the other sites, which may take hours. Returns 0 with the
 * bytes of WORLD, to be freed: what message_read_world reads. Returns -1 with a sentence: this site gets no
 * world. */
int rendezvous_world(const struct rendezvous_request *request, unsigned char **world, size_t *n, char *why,
                     size_t room);

/* The descriptor of the rendezvous, or -1. Readable: call rendezvous_heard. */
int rendezvous_descriptor(void);
/* What `causeway run` has said since: 0 nothing, 1 that the world is to end (code and text), -1 that it is
 * gone, which is the end, too. It does not wait. */
int rendezvous_heard(uint32_t *code, char *text, size_t room);

/* Says that the program called MPI_Abort, in a process of any rank. It takes two seconds at most, and fails
 * in silence: the site's own end says the same, only later. */
void rendezvous_abort(uint32_t code, const char *text);
/* Says that all ranks of this site have finished, and closes. */
void rendezvous_done(void);

#endif
