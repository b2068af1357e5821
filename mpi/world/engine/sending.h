/* Sends, and when they are done. */
#ifndef CAUSEWAY_WORLD_SENDING_H
#define CAUSEWAY_WORLD_SENDING_H

#include "world/engine/engine.h"
#include "world/engine/operation.h"

/* Begins a send to rank `source` of the channel; its channel, tag, room (its length), is_sync and is_told are
 * set. `source_rank` is the sender's own rank. The data at `buffer` must stay until the operation is done;
 * with has_own_memory the engine frees it. */
void engine_send(struct engine *engine, struct operation *send, uint32_t source_rank);

/* Copies a send that is not completely written yet, so that it is done, unless it is large, too much is
 * copied already, or it waits for MATCHED. Called once everything that can be written at once has been. */
void engine_copy(struct engine *engine, struct operation *send);

/* Cancels a send of which nothing has been sent. Returns true if it was cancelled; it is then done. */
int engine_cancel_send(struct engine *engine, struct operation *send);

/* Whether bytes wait to be written, or a synchronous send waits for MATCHED. */
int engine_sends_wait(const struct engine *engine);

#endif
