/* Which peers are up, lost, or have ended. */
#include "world/engine/state.h"

#include <string.h>

void engine_peer_up(struct engine *engine, uint32_t peer)
{
    if (peer < engine->peer_count)
        engine->peers[peer].is_up = 1;
}

void engine_peer_lost(struct engine *engine, uint32_t number, const char *reason)
{
    if (number >= engine->peer_count)
        return;
    struct peer *peer = &engine->peers[number];
    if (peer->is_lost || peer->has_said_bye)
        return;
    peer->is_lost = 1;
    peer->why_lost = strdup(reason);
    if (!engine->has_lost)
        engine->lost_peer = number;
    engine->has_lost = 1;
}

const char *engine_lost(const struct engine *engine, uint32_t *peer)
{
    if (!engine->has_lost)
        return NULL;
    *peer = engine->lost_peer;
    const char *why = engine->peers[engine->lost_peer].why_lost;
    return why ? why : "out of memory";
}

void engine_say_bye(struct engine *engine) { engine->is_ending = 1; }

int engine_bye_came(const struct engine *engine, uint32_t peer) { return engine->peers[peer].has_said_bye; }

int engine_bye_sent(const struct engine *engine, uint32_t peer) { return engine->peers[peer].bye_is_written; }
