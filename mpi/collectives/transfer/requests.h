/* Messages between ranks of a communicator that are under way. */
#ifndef CAUSEWAY_REQUESTS_H
#define CAUSEWAY_REQUESTS_H

#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

/* Messages that are waited for together. */
struct requests {
    struct request {
        MPI_Request handle;
        int receives;
        /* From another site: who sends how many bytes, and where these come; NULL for other messages. */
        const struct hierarchy *on;
        int from;
        int64_t bytes;
        void *into;
        MPI_Datatype type;
    } *all;
    int count, room;
};

/* They go between ranks of on->across, of the own site too. */
int requests_send(struct requests *some, const struct hierarchy *on, const void *from, int64_t count,
                  MPI_Datatype type, int to, int tag);
int requests_receive(struct requests *some, const struct hierarchy *on, void *into, int64_t count,
                     MPI_Datatype type, int from, int tag);
/* A message to or from another site, whose two ends may describe it by different datatypes. MPICH and Intel
 * MPI would hold a large one back until the far side has answered. So it goes as bytes, in segments, which
 * they do not hold back. `bytes` is kept until the requests have been waited for. Then it is taken out, or
 * freed. */
int requests_send_cut(struct requests *some, const struct hierarchy *on, const void *from, int64_t count,
                      const struct shape *shape, int to, int tag, struct bytes *bytes);
int requests_receive_cut(struct requests *some, const struct hierarchy *on, void *into, int64_t count,
                         const struct shape *shape, int from, int tag, struct bytes *bytes);
int requests_wait(struct requests *some);
/* Waits for one message alone. */
int requests_wait_for(struct requests *some, int which);
/* Waits for all. After an error some may never be answered: then no more is waited for, and nothing is left
 * that writes into memory. */
void requests_free(struct requests *some, int status);

#endif
