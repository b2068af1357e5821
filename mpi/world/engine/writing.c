/* Decides what to write to a peer next: answers, then credit, then heads, then data of messages in turn. A
 * few frames at a time are laid out as pieces, whose order is then fixed. */
#include "world/engine/state.h"

#include <stdlib.h>
#include <string.h>

void answer(struct engine *engine, uint32_t number, uint8_t kind, uint32_t id)
{
    struct answers *answers = &engine->peers[number].answers;
    if (answers->first == answers->end)
        answers->first = answers->end = 0;
    if (answers->end == answers->room) {
        size_t room = answers->room ? 2 * answers->room : 16;
        struct answer *all = realloc(answers->all, room * sizeof *all);
        if (!all) {
            engine_peer_lost(engine, number, "out of memory for the answers to its messages");
            return;
        }
        answers->all = all;
        answers->room = room;
    }
    answers->all[answers->end++] = (struct answer){kind, id};
}

/* Lays out a frame, with data of a send from `at`. */
static void lay_out(struct peer *peer, const struct frame *frame, struct outgoing *of, uint64_t at)
{
    struct piece *piece = &peer->pieces[(peer->first_piece + peer->piece_count++) % PIECES];
    *piece =
        (struct piece){.data_bytes = frame->data, .of = of, .at = at, .is_bye = frame->kind == FRAME_BYE};
    piece->head_bytes = (uint32_t)frame_encode(frame, piece->head);
    peer->laid_out += piece->head_bytes + piece->data_bytes;
    if (of) {
        of->pieces++;
        of->laid_out += frame->data;
    }
}

/* Whether all data of a message fits into one turn. */
static int is_of_one_turn(const struct outgoing *out) { return out->bytes <= FRAME_MOST_DATA; }

/* Whether an earlier message waits for credit. If later messages used the credit of earlier ones, a receiver
 * that takes messages in order would wait a round trip for each of these. A message of many turns gets its
 * share anyway. */
static int credit_is_awaited(const struct peer *peer)
{
    for (const struct outgoing *out = peer->data; out; out = out->next)
        if (!out->is_granted && is_of_one_turn(out))
            return 1;
    return 0;
}

static void lay_out_head(struct engine *engine, struct peer *peer)
{
    struct outgoing *out = peer->heads;
    peer->heads = out->next;
    if (!peer->heads)
        peer->heads_end = &peer->heads;
    out->next = NULL;
    peer->heads_left--;
    struct frame frame = {.kind = FRAME_HEAD,
                          .flags = out->is_sync ? FRAME_SYNC : 0,
                          .id = out->id,
                          .context = out->context,
                          .source = out->source,
                          .tag = out->tag,
                          .bytes = out->bytes};
    int is_whole = out->bytes == 0 || (out->bytes <= FRAME_MOST_INLINE && out->bytes <= peer->credit &&
                                       !credit_is_awaited(peer));
    if (is_whole) {
        frame.data = (uint32_t)out->bytes;
        peer->credit -= out->bytes;
    }
    if (!is_whole || out->is_sync) {
        if (numbers_add(&engine->sends, number_of(out->peer, out->id), out))
            engine_peer_lost(engine, out->peer, "out of memory for the messages to it");
        out->is_named = 1;
    }
    out->is_queued = !is_whole;
    lay_out(peer, &frame, out, 0);
    if (!is_whole) {
        *peer->data_end = out;
        peer->data_end = &out->next;
    }
}

/* The first send with data that may be sent now, or NULL. */
static struct outgoing **next_data(struct peer *peer)
{
    struct outgoing **at = &peer->data;
    if (peer->credit)
        return *at ? at : NULL;
    if (!peer->granted)
        return NULL;
    while (*at && !(*at)->is_granted)
        at = &(*at)->next;
    return *at ? at : NULL;
}

static void lay_out_data(struct peer *peer, struct outgoing **at)
{
    struct outgoing *out = *at;
    uint64_t left = out->bytes - out->laid_out, most = FRAME_MOST_DATA;
    if (!out->is_granted && most > peer->credit)
        most = peer->credit;
    struct frame frame = {.kind = FRAME_DATA,
                          .counted = !out->is_granted,
                          .id = out->id,
                          .data = (uint32_t)(left < most ? left : most)};
    if (frame.counted)
        peer->credit -= frame.data;
    lay_out(peer, &frame, out, out->laid_out);
    /* The next credit is for the rest of this message. */
    if (frame.counted && frame.data < left && is_of_one_turn(out))
        return;
    /* Moves it to the end of the queue. */
    *at = out->next;
    if (!*at)
        peer->data_end = at;
    out->next = NULL;
    out->is_queued = out->laid_out < out->bytes;
    peer->granted -= out->is_granted && !out->is_queued;
    if (out->is_queued) {
        *peer->data_end = out;
        peer->data_end = &out->next;
    }
}

/* Whether the peer can need nothing more from this process. Data that is still not granted belongs to a
 * message that nobody will receive. Heads that wait for credit may be needed until the peer has said BYE. */
static int is_over(const struct engine *engine, const struct peer *peer)
{
    return engine->is_ending && (!peer->heads || peer->has_said_bye);
}

static int lay_out_next(struct engine *engine, struct peer *peer)
{
    struct answers *answers = &peer->answers;
    struct outgoing **data;
    if (answers->first < answers->end) {
        struct answer next = answers->all[answers->first++];
        lay_out(peer, &(struct frame){.kind = next.kind, .id = next.id}, NULL, 0);
    } else if (credit_is_due(peer)) {
        struct frame credit = credit_take(peer);
        lay_out(peer, &credit, NULL, 0);
    } else if (peer->heads && peer->heads_left) {
        lay_out_head(engine, peer);
    } else if ((data = next_data(peer))) {
        lay_out_data(peer, data);
    } else if (is_over(engine, peer) && !peer->bye_is_laid_out) {
        peer->bye_is_laid_out = 1;
        lay_out(peer, &(struct frame){.kind = FRAME_BYE}, NULL, 0);
    } else {
        return 0;
    }
    return 1;
}

static void lay_out_all(struct engine *engine, struct peer *peer)
{
    while (!peer->bye_is_laid_out && peer->piece_count < PIECES && peer->laid_out < MOST_LAID_OUT &&
           lay_out_next(engine, peer))
        ;
}

int engine_has_to_send(const struct engine *engine, uint32_t number)
{
    const struct peer *peer = &engine->peers[number];
    if (peer->is_lost || !peer->is_up)
        return 0;
    if (peer->piece_count)
        return 1;
    if (peer->bye_is_laid_out)
        return 0;
    return peer->answers.first < peer->answers.end || (peer->heads && peer->heads_left) ||
           (peer->data && peer->credit) || peer->granted || credit_is_due(peer) || is_over(engine, peer);
}

int engine_to_send(struct engine *engine, uint32_t number, struct iovec *pieces, int most)
{
    struct peer *peer = &engine->peers[number];
    if (peer->is_lost || !peer->is_up)
        return 0;
    lay_out_all(engine, peer);
    int count = 0;
    uint64_t written = peer->piece_written;
    for (uint32_t i = 0; i < peer->piece_count && count + 2 <= most; i++) {
        struct piece *piece = &peer->pieces[(peer->first_piece + i) % PIECES];
        if (written < piece->head_bytes)
            pieces[count++] = (struct iovec){piece->head + written, piece->head_bytes - written};
        uint64_t at = written > piece->head_bytes ? written - piece->head_bytes : 0;
        if (at < piece->data_bytes)
            pieces[count++] =
                (struct iovec){(void *)(piece->of->data + piece->at + at), (size_t)(piece->data_bytes - at)};
        written = 0;
    }
    return count;
}

void engine_sent(struct engine *engine, uint32_t number, size_t n)
{
    struct peer *peer = &engine->peers[number];
    peer->laid_out -= n;
    peer->piece_written += n;
    while (peer->piece_count) {
        struct piece *piece = &peer->pieces[peer->first_piece];
        uint64_t all = (uint64_t)piece->head_bytes + piece->data_bytes;
        if (peer->piece_written < all)
            break;
        peer->piece_written -= all;
        peer->first_piece = (peer->first_piece + 1) % PIECES;
        peer->piece_count--;
        peer->bye_is_written |= piece->is_bye;
        if (piece->of)
            send_piece_written(engine, piece->of, piece->data_bytes);
    }
}
