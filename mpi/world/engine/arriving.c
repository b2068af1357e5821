/* Takes bytes from a peer: assembles heads, and stores data where it belongs. */
#include "world/engine/state.h"

#include <stdlib.h>
#include <string.h>

/* The least memory that is allocated for a held message longer than this. */
enum { FIRST_HELD = 64 * FRAME_KIB };

static const char *const no_memory = "out of memory for a message that nobody has asked for";
static const char *const no_credit = "more data than it has credit for";

/* Makes room for data that is held. Arriving data is paid for with credit, so memory grows with the data that
 * has arrived, not with the length that a head claims. */
static int hold(struct message *message, uint64_t n)
{
    uint64_t needed = message->came + n;
    if (needed <= message->held_room)
        return 0;
    uint64_t room = 2 * message->held_room > FIRST_HELD ? 2 * message->held_room : FIRST_HELD;
    if (room < needed)
        room = needed;
    if (room > message->bytes)
        room = message->bytes;
    unsigned char *held = realloc(message->held, room);
    if (!held)
        return -1;
    message->held = held;
    message->held_room = room;
    return 0;
}

/* Where the next bytes of a message go; NULL if the receive has no room for them. */
static unsigned char *target(const struct message *message, uint64_t *room)
{
    unsigned char *into = message->receive ? message->receive->buffer : message->held;
    uint64_t all = message->receive ? message->receive->room : message->held_room;
    *room = all > message->came ? all - message->came : 0;
    return *room ? into + message->came : NULL;
}

/* Called when n bytes of the frame's data have been stored. */
static void have(struct engine *engine, struct peer *peer, uint64_t n)
{
    struct message *message = peer->into;
    message->came += n;
    peer->data_left -= n;
    if (peer->is_counted && message->receive)
        credit_free(engine, peer, n);
    if (peer->data_left == 0)
        peer->into = NULL;
    if (message->came < message->bytes)
        return;
    /* From now on its number may be reused for another message, whoever receives this one and when. */
    if (!message->is_whole)
        numbers_remove(&engine->messages, number_of(message->peer, message->id));
    message_completes(engine, message);
}

static const char *begin_data(struct peer *peer, struct message *message, const struct frame *frame)
{
    if (frame->data > message->bytes - message->came)
        return "more data than its message has";
    if (frame->counted && frame->data > peer->may_come)
        return no_credit;
    if (!frame->counted && !message->receive)
        return "data without credit, of a message that was not granted";
    if (!message->receive && hold(message, frame->data))
        return no_memory;
    peer->may_come -= frame->counted ? frame->data : 0;
    peer->is_counted = frame->counted;
    peer->data_left = frame->data;
    peer->into = frame->data ? message : NULL;
    return NULL;
}

/* Enters a message into the table, because data for it will arrive in separate frames. */
static const char *name(struct engine *engine, struct message *message)
{
    uint64_t number = number_of(message->peer, message->id);
    if (numbers_find(&engine->messages, number))
        return "two messages of one number";
    return numbers_add(&engine->messages, number, message) ? no_memory : NULL;
}

static const char *on_head(struct engine *engine, uint32_t number, const struct frame *frame)
{
    struct peer *peer = &engine->peers[number];
    if (frame->data > peer->may_come)
        return no_credit;
    if (!peer->heads_may_come)
        return "more messages than it has credit for";
    struct message *message = calloc(1, sizeof *message);
    if (!message)
        return no_memory;
    *message = (struct message){.peer = number,
                                .id = frame->id,
                                .context = frame->context,
                                .source = frame->source,
                                .tag = frame->tag,
                                .is_sync = frame->flags & FRAME_SYNC,
                                .is_whole = frame->data == frame->bytes,
                                .bytes = frame->bytes};
    peer->heads_may_come--;
    const char *wrong = message->is_whole ? NULL : name(engine, message);
    if (wrong) {
        message_free(message);
        return wrong;
    }
    wrong = message_arrives(engine, message);
    if (wrong) {
        if (!message->is_whole)
            numbers_remove(&engine->messages, number_of(number, frame->id));
        message_free(message);
        return wrong;
    }
    /* A message without data may already be complete, and freed. */
    return frame->data ? begin_data(&engine->peers[number], message, frame) : NULL;
}

static const char *on_data(struct engine *engine, uint32_t number, const struct frame *frame)
{
    struct message *message = numbers_find(&engine->messages, number_of(number, frame->id));
    if (!message)
        return "data of a message that it did not begin";
    return begin_data(&engine->peers[number], message, frame);
}

static const char *on_frame(struct engine *engine, uint32_t number, const struct frame *frame)
{
    struct peer *peer = &engine->peers[number];
    switch (frame->kind) {
    case FRAME_HEAD:
        return on_head(engine, number, frame);
    case FRAME_DATA:
        return on_data(engine, number, frame);
    case FRAME_CREDIT:
        if (frame->bytes > MOST_WINDOW || peer->credit + frame->bytes > MOST_WINDOW)
            return "more credit than any window has";
        if (frame->heads > MOST_HEADS - peer->heads_left)
            return "more credit than there are heads";
        peer->credit += frame->bytes;
        peer->heads_left += frame->heads;
        return NULL;
    case FRAME_GRANT:
        send_is_granted(engine, number, frame->id);
        return NULL;
    case FRAME_MATCHED:
        send_is_matched(engine, number, frame->id);
        return NULL;
    default:
        peer->has_said_bye = 1;
        return NULL;
    }
}

/* Takes bytes for the head that is being assembled; returns how many. */
static size_t take_head(struct peer *peer, const unsigned char *bytes, size_t n, size_t *whole)
{
    *whole = frame_head_bytes(peer->head_bytes ? peer->head[0] : bytes[0]);
    size_t needed = *whole > peer->head_bytes ? *whole - peer->head_bytes : 0;
    size_t taken = n < needed ? n : needed;
    memcpy(peer->head + peer->head_bytes, bytes, taken);
    peer->head_bytes += taken;
    return taken;
}

static size_t take_data(struct engine *engine, struct peer *peer, const unsigned char *bytes, size_t n)
{
    uint64_t taken = n < peer->data_left ? n : peer->data_left, room;
    unsigned char *into = target(peer->into, &room);
    if (into)
        memcpy(into, bytes, taken < room ? taken : room);
    have(engine, peer, taken);
    return taken;
}

static const char *receive(struct engine *engine, uint32_t number, const unsigned char *bytes, size_t n)
{
    struct peer *peer = &engine->peers[number];
    while (n) {
        size_t taken, whole;
        if (peer->data_left) {
            taken = take_data(engine, peer, bytes, n);
        } else {
            if (peer->has_said_bye)
                return "something after its end";
            taken = take_head(peer, bytes, n, &whole);
            if (whole == 0)
                return "a frame of no known kind";
            if (peer->head_bytes == whole) {
                struct frame frame;
                peer->head_bytes = 0;
                const char *wrong = frame_decode(&frame, peer->head);
                wrong = wrong ? wrong : on_frame(engine, number, &frame);
                if (wrong)
                    return wrong;
            }
        }
        bytes += taken;
        n -= taken;
    }
    return NULL;
}

int engine_received(struct engine *engine, uint32_t number, const void *bytes, size_t n)
{
    if (number >= engine->peer_count || engine->peers[number].is_lost)
        return -1;
    const char *wrong = receive(engine, number, bytes, n);
    if (wrong)
        engine_peer_lost(engine, number, wrong);
    return wrong ? -1 : 0;
}

void *engine_read_target(struct engine *engine, uint32_t number, size_t *n)
{
    struct peer *peer = &engine->peers[number];
    uint64_t room;
    if (!peer->data_left || peer->is_lost)
        return NULL;
    void *into = target(peer->into, &room);
    *n = room < peer->data_left ? room : peer->data_left;
    return into;
}

void engine_read(struct engine *engine, uint32_t number, size_t n)
{
    if (n)
        have(engine, &engine->peers[number], n);
}
