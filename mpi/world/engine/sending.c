#include "world/engine/sending.h"

#include "world/engine/state.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Sends up to this size are done once they are copied; the program waits for larger ones instead. */
    MOST_COPIED = 64 * FRAME_KIB,
    MOST_COPIED_OF_ALL = 16 * 1024 * FRAME_KIB,
};

static void finish(struct engine *engine, struct outgoing *out)
{
    struct operation *send = out->operation;
    if (!send)
        return;
    out->operation = NULL;
    send->outgoing = NULL;
    operation_finish(engine, send);
}

static void forget(struct engine *engine, struct outgoing *out)
{
    engine->waiting--;
    if (out->has_copy) {
        free((void *)out->data);
        engine->copied -= out->copied;
    }
    free(out);
}

/* Frees a send if nothing is left to be done for it. */
static void settle(struct engine *engine, struct outgoing *out)
{
    int is_written = out->written == out->bytes && out->pieces == 0 && !out->is_queued;
    if (is_written && (!out->is_sync || out->is_matched)) {
        finish(engine, out);
        if (out->is_named)
            numbers_remove(&engine->sends, number_of(out->peer, out->id));
        forget(engine, out);
    }
}

void engine_send(struct engine *engine, struct operation *send, uint32_t source_rank)
{
    struct channel *channel = send->channel;
    struct outgoing *out = calloc(1, sizeof *out);
    send->is_send = 1;
    send->state = OPERATION_WAITS;
    send->bytes = send->room;
    if (!out) {
        send->has_no_memory = 1;
        operation_finish(engine, send);
        return;
    }
    *out = (struct outgoing){.operation = send,
                             .peer = (uint32_t)channel->numbers[send->source],
                             .context = channel->context,
                             .source = source_rank,
                             .tag = send->tag,
                             .is_sync = send->is_sync,
                             .is_queued = 1,
                             .data = send->buffer,
                             .bytes = send->room,
                             .has_copy = (uint8_t)send->has_own_memory};
    send->outgoing = out;
    struct peer *peer = &engine->peers[out->peer];
    out->id = ++peer->last_id;
    *peer->heads_end = out;
    peer->heads_end = &out->next;
    engine->waiting++;
}

void engine_copy(struct engine *engine, struct operation *send)
{
    struct outgoing *out = send->outgoing;
    if (!out || out->is_sync)
        return;
    if (!out->has_copy) {
        if (out->bytes > MOST_COPIED || engine->copied + out->bytes > MOST_COPIED_OF_ALL)
            return;
        unsigned char *copy = malloc(out->bytes ? out->bytes : 1);
        if (!copy)
            return;
        if (out->bytes)
            memcpy(copy, out->data, out->bytes);
        out->data = copy;
        out->copied = out->bytes;
        engine->copied += out->bytes;
        out->has_copy = 1;
    }
    finish(engine, out);
}

int engine_cancel_send(struct engine *engine, struct operation *send)
{
    struct outgoing *out = send->outgoing;
    if (!out)
        return 0;
    struct peer *peer = &engine->peers[out->peer];
    for (struct outgoing **at = &peer->heads; *at; at = &(*at)->next)
        if (*at == out) {
            *at = out->next;
            if (!*at)
                peer->heads_end = at;
            send->is_cancelled = 1;
            finish(engine, out);
            forget(engine, out);
            return 1;
        }
    return 0;
}

int engine_sends_wait(const struct engine *engine) { return engine->waiting > 0; }

int engine_awaits(const struct engine *engine, uint32_t number)
{
    const struct peer *peer = &engine->peers[number];
    return peer->data != NULL || (peer->heads && !peer->heads_left);
}

void send_is_granted(struct engine *engine, uint32_t peer, uint32_t id)
{
    struct outgoing *out = numbers_find(&engine->sends, number_of(peer, id));
    /* It may have been sent on credit meanwhile. */
    if (!out || out->is_granted)
        return;
    out->is_granted = 1;
    engine->peers[peer].granted += out->is_queued;
}

void send_is_matched(struct engine *engine, uint32_t peer, uint32_t id)
{
    struct outgoing *out = numbers_find(&engine->sends, number_of(peer, id));
    if (!out || !out->is_sync)
        return;
    out->is_matched = 1;
    settle(engine, out);
}

/* Called when a piece has been written. */
void send_piece_written(struct engine *engine, struct outgoing *out, uint32_t bytes)
{
    out->written += bytes;
    out->pieces--;
    settle(engine, out);
}

static void free_all(struct outgoing *out)
{
    while (out) {
        struct outgoing *next = out->next;
        if (!out->is_named) {
            if (out->has_copy)
                free((void *)out->data);
            free(out);
        }
        out = next;
    }
}

/* Sends that are in the table are freed with it. */
void sends_free(struct peer *peer)
{
    free_all(peer->heads);
    free_all(peer->data);
    for (uint32_t i = 0; i < peer->piece_count; i++) {
        struct piece *piece = &peer->pieces[(peer->first_piece + i) % PIECES];
        if (piece->of && !piece->of->is_named && !piece->of->is_queued) {
            piece->of->next = NULL;
            free_all(piece->of);
        }
    }
}
