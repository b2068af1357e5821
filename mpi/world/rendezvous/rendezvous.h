/* How a world comes together, and how it ends: the connection of a site's native rank 0 to the rendezvous in
 * `causeway run --at`, which lasts from before MPI_Init returns until MPI_Finalize.
 *
 *     every process      rendezvous_wanted, rendezvous_listen
 *     native rank 0      rendezvous_world, with the addresses of all; its bytes then go to all of the site
 *     every process      message_read_world (message.h)
 *     native rank 0      rendezvous_done at the end, rendezvous_heard in between
 *     any process        rendezvous_abort
 *
 * Nothing here depends on MPI. */
#ifndef CAUSEWAY_WORLD_RENDEZVOUS_H
#define CAUSEWAY_WORLD_RENDEZVOUS_H

#include "world/rendezvous/message.h"

/* Whether this process belongs to a world: 1, 0, or -1 with a sentence in `why` if it was told something that
 * it cannot use; then it must end. Call this first. */
int rendezvous_wanted(char *why, size_t room);
/* This site's name, once rendezvous_wanted has returned 1. */
const char *rendezvous_site(void);

/* Opens this process's listener, non-blocking and closed on exec, and sets *address to the address by which
 * other sites know it. Returns the descriptor, or -1 with a sentence in `why`. */
int rendezvous_listen(struct sockaddr_storage *address, char *why, size_t room);

/* Reports this site's processes to the rendezvous, and waits for the other sites, which may take hours.
 * Returns 0 with the bytes of WORLD, which message_read_world reads and the caller frees; or -1 with a
 * sentence in `why` if this site gets no world. */
int rendezvous_world(const struct rendezvous_request *request, unsigned char **world, size_t *n, char *why,
                     size_t room);

/* The descriptor of the connection to the rendezvous, or -1. When it is readable, call rendezvous_heard. */
int rendezvous_descriptor(void);
/* What `causeway run` has said since: 0 if nothing, 1 if the world is to end (code and text), -1 if `causeway
 * run` is gone, which is the end, too. Does not wait. */
int rendezvous_heard(uint32_t *code, char *text, size_t room);

/* Reports that the program called MPI_Abort, in a process of any rank. Takes two seconds at most, and fails
 * silently: the end of the site's job reports the same, only later. */
void rendezvous_abort(uint32_t code, const char *text);
/* Reports that all ranks of this site have finished, and closes the connection. */
void rendezvous_done(void);

#endif
