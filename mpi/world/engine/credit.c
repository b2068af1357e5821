/* Credit: how much a peer may send for which no receive is posted. Such messages cost memory here, so their
 * data is counted, and limited by a window. */
#include "world/engine/state.h"

/* If a sender fills its window and all of it is freed again, its messages are being received: the window is
 * doubled, so that its messages need not wait for a round trip per window. */
static void grow(struct engine *engine, struct peer *peer)
{
    uint64_t more = peer->window;
    if (peer->freed < peer->window || peer->window + more > MOST_WINDOW ||
        engine->windows + more > MOST_WINDOWS)
        return;
    peer->freed = 0;
    peer->window += more;
    peer->owed += more;
    engine->windows += more;
}

void credit_free(struct engine *engine, struct peer *peer, uint64_t bytes)
{
    peer->owed += bytes;
    peer->freed += bytes;
    grow(engine, peer);
}

/* A quarter of a window, or of the heads, is worth a frame. Withholding less cannot block the sender: while
 * it has no credit at all, three quarters are held here, for messages that nobody has asked for. */
int credit_is_due(const struct peer *peer)
{
    return peer->owed >= peer->window / 4 || peer->heads_owed >= MOST_HEADS / 4;
}

struct frame credit_take(struct peer *peer)
{
    struct frame frame = {.kind = FRAME_CREDIT, .bytes = peer->owed, .heads = peer->heads_owed};
    peer->may_come += peer->owed;
    peer->heads_may_come += peer->heads_owed;
    peer->owed = 0;
    peer->heads_owed = 0;
    return frame;
}
