/* Messages in transit between ranks of a communicator. */
#ifndef CAUSEWAY_REQUESTS_H
#define CAUSEWAY_REQUESTS_H

#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

/* Messages that the caller waits for together. */
struct requests {
    struct request {
        MPI_Request handle;
        int receives;
        /* For a message from another site: the communicator, sender, size, buffer and type. `on` is NULL for
         * other messages. */
        const struct hierarchy *on;
        int from;
        int64_t bytes;
        void *into;
        MPI_Datatype type;
    } *all;
    int count, room;
};

/* The messages go between ranks of on->across, including those of the same site. */
int requests_send(struct requests *some, const struct hierarchy *on, const void *from, int64_t count,
                  MPI_Datatype type, int to, int tag);
int requests_receive(struct requests *some, const struct hierarchy *on, void *into, int64_t count,
                     MPI_Datatype type, int from, int tag);
/* A message to or from another site, whose two ends may describe it by different datatypes. MPICH and Intel
 * MPI would hold a large one back until the far side has answered, so it is sent as bytes, in segments, which
 * they do not hold back. The caller keeps `bytes` until it has waited for the requests, then unpacks or frees
 * it. */
int requests_send_cut(struct requests *some, const struct hierarchy *on, const void *from, int64_t count,
                      const struct shape *shape, int to, int tag, struct bytes *bytes);
int requests_receive_cut(struct requests *some, const struct hierarchy *on, void *into, int64_t count,
                         const struct shape *shape, int from, int tag, struct bytes *bytes);
int requests_wait(struct requests *some);
/* Waits for a single message. */
int requests_wait_for(struct requests *some, int which);
/* Waits for all messages, and frees them. After an error (`status`), some may never be answered: then it
 * cancels receives and abandons sends, and nothing is left that writes to memory. */
void requests_free(struct requests *some, int status);

#endif
