/* Receives and messages of one channel, and how they find each other. */
#ifndef CAUSEWAY_WORLD_MATCHING_H
#define CAUSEWAY_WORLD_MATCHING_H

#include "world/engine/engine.h"
#include "world/engine/operation.h"

/* Opens a channel whose context, numbers, size and owner are set, and hands it the messages that came too
 * early. Returns -1 where there is no memory. */
int engine_channel_open(struct engine *engine, struct channel *channel);
/* Forgets a channel. Messages that nobody received are thrown away; no receive may be posted. */
void engine_channel_close(struct engine *engine, struct channel *channel);

/* Posts a receive whose channel, source, tag, buffer, room, may_be_native and is_told are set. */
void engine_post(struct engine *engine, struct operation *receive);
/* Takes back a receive that has no message yet; true where it was cancelled. It is done then. */
int engine_cancel_receive(struct engine *engine, struct operation *receive);
/* Whether a receive from a rank here would take what an earlier one, posted with the engine, is owed. Such a
 * receive must be posted with the engine too. */
int engine_must_queue(const struct channel *channel, int32_t source, int32_t tag);

/* The first message of a channel that nobody has and that matches; 0 where there is none. */
int engine_probe(const struct channel *channel, int32_t source, int32_t tag, struct operation *found);

/* Takes the first such message out of the channel, for a receive that names it; NULL where there is none. */
struct message *engine_reserve(struct channel *channel, int32_t source, int32_t tag, struct operation *found);
/* That receive: channel, buffer, room and is_told are set. */
void engine_receive_reserved(struct engine *engine, struct message *message, struct operation *receive);

/* The site's own MPI, asked for messages from ranks here. Ranks are the channel's. */
struct native {
    /* Whether there is a message; its source and tag. `source` may be ANY. */
    int (*probe)(struct channel *channel, int32_t source, int32_t tag, int32_t *found_source,
                 int32_t *found_tag);
    /* Begins to receive the first message of exactly that source and tag. The receive is matched then, and
     * engine_native_done is called once it is complete. */
    void (*take)(struct channel *channel, int32_t source, int32_t tag, struct operation *receive);
};
/* Asks whether the site's MPI has something for receives that are posted here: as it stands, it sees none of
 * them. Returns how many were matched. */
int engine_match_native(struct engine *engine, const struct native *here);
void engine_native_done(struct engine *engine, struct operation *receive);
/* The same for one message that a probe found here: whether a receive posted earlier is owed it. */
int engine_is_owed(const struct channel *channel, int32_t source, int32_t tag);

#endif
