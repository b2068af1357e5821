/* Sends, and when they are done. */
#ifndef CAUSEWAY_WORLD_SENDING_H
#define CAUSEWAY_WORLD_SENDING_H

#include "world/engine/engine.h"
#include "world/engine/operation.h"

/* Begins a send whose channel, tag, room (its length), is_sync and is_told are set, to a rank of the channel,
 * `source`. `source_rank` is the sender's own. The data at `buffer` must stay until the operation is done;
 * with has_own_memory it is the engine's to free. */
void engine_send(struct engine *engine, struct operation *send, uint32_t source_rank);

/* Copies what of a send is not written yet, so that it is done, unless it is large, or too much is copied
 * already, or it waits for MATCHED. It is called once what can be written at once has been. */
void engine_copy(struct engine *engine, struct operation *send);

/* Takes back a send of which nothing has gone; true where it was. It is done then. */
int engine_cancel_send(struct engine *engine, struct operation *send);

/* Whether bytes wait to be written, or a synchronous send for MATCHED. */
int engine_sends_wait(const struct engine *engine);

#endif
