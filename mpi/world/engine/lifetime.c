/* The beginning and the end of an engine. */
#include "world/engine/state.h"

#include <stdlib.h>

struct engine *engine_new(uint32_t peers)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->peers = calloc(peers, sizeof *engine->peers);
    if (!engine->peers) {
        free(engine);
        return NULL;
    }
    engine->peer_count = peers;
    engine->orphans_end = &engine->orphans;
    engine->done_end = &engine->done;
    for (uint32_t i = 0; i < peers; i++) {
        struct peer *peer = &engine->peers[i];
        peer->window = peer->may_come = peer->credit = FIRST_WINDOW;
        peer->heads_may_come = peer->heads_left = MOST_HEADS;
        peer->heads_end = &peer->heads;
        peer->data_end = &peer->data;
    }
    return engine;
}

static void free_arriving(struct message *message)
{
    if (!message)
        return;
    if (message->receive && message->receive->is_nobodys)
        free(message->receive);
    message_free(message);
}

/* Messages that nobody received have already been freed with their channel. This finds those that are
 * arriving for a receive. */
void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    /* Messages whose data comes in separate frames are found only in the table of messages. */
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (engine->peers[i].into && !engine->peers[i].into->is_whole)
            engine->peers[i].into = NULL;
    while (engine->orphans) {
        struct message *message = engine->orphans;
        engine->orphans = message->next;
        /* The number of a complete message may already be that of another one. */
        if (!message->is_whole && message->came < message->bytes)
            numbers_remove(&engine->messages, number_of(message->peer, message->id));
        else if (engine->peers[message->peer].into == message)
            engine->peers[message->peer].into = NULL;
        message_free(message);
    }
    for (size_t i = 0; i < engine->messages.room; i++)
        free_arriving(engine->messages.slots[i].named);
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        free_arriving(engine->peers[i].into);
        sends_free(&engine->peers[i]);
        free(engine->peers[i].answers.all);
        free(engine->peers[i].why_lost);
    }
    for (size_t i = 0; i < engine->sends.room; i++) {
        struct outgoing *out = engine->sends.slots[i].named;
        if (out && out->has_copy)
            free((void *)out->data);
        free(out);
    }
    numbers_free(&engine->channels);
    numbers_free(&engine->messages);
    numbers_free(&engine->sends);
    free(engine->peers);
    free(engine);
}
