#include "plain_engine.h"
#include <stdio.h>
#include <string.h>

enum { MOST_DATA = 100000 };

static unsigned char byte_at(uint32_t sender, uint64_t place)
{
    return (unsigned char)(place * 31 + place / 251 + sender);
}

void plain_send(struct engine *engine, uint32_t peer, uint64_t bytes)
{
    engine->peers[peer].to_send += bytes;
}

int engine_awaits(const struct engine *engine, uint32_t peer) { return engine->peers[peer].awaits; }

void engine_peer_up(struct engine *engine, uint32_t peer) { engine->peers[peer].ups++; }

void engine_peer_lost(struct engine *engine, uint32_t peer, const char *reason)
{
    struct plain_peer *p = &engine->peers[peer];
    if (p->bye_came)
        return;
    p->lost++;
    snprintf(p->reason, sizeof p->reason, "%s", reason);
}

static void check(struct engine *engine, uint32_t peer, const unsigned char *bytes, size_t n)
{
    struct plain_peer *p = &engine->peers[peer];
    for (size_t i = 0; i < n; i++)
        engine->wrong |= bytes[i] != byte_at(peer, p->received + i);
    p->received += n;
    p->data_in_left -= n;
}

int engine_received(struct engine *engine, uint32_t peer, const void *bytes, size_t n)
{
    struct plain_peer *p = &engine->peers[peer];
    const unsigned char *at = bytes;
    while (n > 0) {
        if (p->data_in_left > 0) {
            size_t data = n < p->data_in_left ? n : p->data_in_left;
            check(engine, peer, at, data);
            at += data;
            n -= data;
            continue;
        }
        p->head_in[p->head_in_bytes++] = *at++;
        n--;
        if (p->head_in[0] == 'B') {
            p->bye_came = 1;
            p->head_in_bytes = 0;
        } else if (p->head_in[0] != 'D') {
            p->lost++;
            snprintf(p->reason, sizeof p->reason, "broken");
            return -1;
        } else if (p->head_in_bytes == sizeof p->head_in) {
            uint32_t data;
            memcpy(&data, p->head_in + 1, sizeof data);
            p->data_in_left = data;
            p->head_in_bytes = 0;
        }
    }
    return 0;
}

/* Straight to a place of the receiver's own, when much of a frame is left. */
static unsigned char target[MOST_DATA];

void *engine_read_target(struct engine *engine, uint32_t peer, size_t *n)
{
    *n = engine->peers[peer].data_in_left;
    return *n > 1000 ? target : NULL;
}

void engine_read(struct engine *engine, uint32_t peer, size_t n) { check(engine, peer, target, n); }

static void next_frame(struct plain_peer *p)
{
    if (p->head_left > 0 || p->data_left > 0)
        return;
    if (p->to_send > 0) {
        uint32_t data = (uint32_t)(p->to_send < MOST_DATA ? p->to_send : MOST_DATA);
        p->head[0] = 'D';
        memcpy(p->head + 1, &data, sizeof data);
        p->head_left = sizeof p->head;
        p->data_left = data;
        p->to_send -= data;
    } else if (p->says_bye && !p->bye_queued) {
        p->head[sizeof p->head - 1] = 'B';
        p->head_left = 1;
        p->bye_queued = 1;
    }
}

int engine_to_send(struct engine *engine, uint32_t peer, struct iovec *pieces, int most)
{
    static unsigned char data[MOST_DATA];
    struct plain_peer *p = &engine->peers[peer];
    int count = 0;
    next_frame(p);
    if (p->head_left > 0 && count < most)
        pieces[count++] = (struct iovec){p->head + sizeof p->head - p->head_left, p->head_left};
    if (p->data_left > 0 && count < most) {
        for (size_t i = 0; i < p->data_left; i++)
            data[i] = byte_at(engine->me, p->next + i);
        pieces[count++] = (struct iovec){data, p->data_left};
    }
    return count;
}

void engine_sent(struct engine *engine, uint32_t peer, size_t n)
{
    struct plain_peer *p = &engine->peers[peer];
    size_t head = n < p->head_left ? n : p->head_left;
    p->head_left -= head;
    p->data_left -= n - head;
    p->next += n - head;
    p->bye_sent = p->bye_queued && p->head_left == 0;
}

int engine_has_to_send(const struct engine *engine, uint32_t peer)
{
    const struct plain_peer *p = &engine->peers[peer];
    return p->head_left > 0 || p->data_left > 0 || p->to_send > 0 || (p->says_bye && !p->bye_queued);
}

void engine_say_bye(struct engine *engine)
{
    for (uint32_t i = 0; i < MOST_PEERS; i++)
        engine->peers[i].says_bye = 1;
}

int engine_bye_came(const struct engine *engine, uint32_t peer) { return engine->peers[peer].bye_came; }

int engine_bye_sent(const struct engine *engine, uint32_t peer) { return engine->peers[peer].bye_sent; }
