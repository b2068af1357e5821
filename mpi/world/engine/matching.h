/* Receives and messages of one channel, and how they are matched. */
#ifndef CAUSEWAY_WORLD_MATCHING_H
#define CAUSEWAY_WORLD_MATCHING_H

#include "world/engine/engine.h"
#include "world/engine/operation.h"

/* Opens a channel whose context, numbers, size and owner are set, and gives it the messages that arrived
 * earlier. Returns -1 if memory is exhausted. */
int engine_channel_open(struct engine *engine, struct channel *channel);
/* Closes a channel. Messages that nobody received are discarded; no receive may be posted. */
void engine_channel_close(struct engine *engine, struct channel *channel);

/* Posts a receive whose channel, source, tag, buffer, room, may_be_native and is_told are set. */
void engine_post(struct engine *engine, struct operation *receive);
/* Cancels a receive that has no message yet. Returns true if it was cancelled; it is then done. */
int engine_cancel_receive(struct engine *engine, struct operation *receive);
/* Whether a receive from a rank of this site could take a message that belongs to an earlier receive, posted
 * with the engine. If so, it must be posted with the engine, too. */
int engine_must_queue(const struct channel *channel, int32_t source, int32_t tag);

/* Finds the first matching message of a channel that nobody has received. Returns 0 if there is none. */
int engine_probe(const struct channel *channel, int32_t source, int32_t tag, struct operation *found);

/* Removes the first such message from the channel, for a receive that names it. Returns NULL if there is
 * none. */
struct message *engine_reserve(struct channel *channel, int32_t source, int32_t tag, struct operation *found);
/* Begins that receive, whose channel, buffer, room and is_told are set. */
void engine_receive_reserved(struct engine *engine, struct message *message, struct operation *receive);

/* Functions that ask the site's own MPI for messages from ranks of this site. Ranks are those of the
 * channel. */
struct native {
    /* Whether there is a message, and its source and tag. `source` may be ANY. */
    int (*probe)(struct channel *channel, int32_t source, int32_t tag, int32_t *found_source,
                 int32_t *found_tag);
    /* Begins to receive the first message with exactly this source and tag. The receive is then matched, and
     * engine_native_done is called once it is complete. */
    void (*take)(struct channel *channel, int32_t source, int32_t tag, struct operation *receive);
};
/* Asks the site's MPI for messages for the receives that are posted here, which it does not see. Returns how
 * many were matched. */
int engine_match_native(struct engine *engine, const struct native *here);
void engine_native_done(struct engine *engine, struct operation *receive);
/* Whether a message of this site, which a probe found, belongs to a receive that was posted earlier. */
int engine_is_owed(const struct channel *channel, int32_t source, int32_t tag);

#endif
