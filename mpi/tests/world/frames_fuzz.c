/* frames_fuzz STREAMS: what a peer sends is damaged, cut anywhere, or drawn at random. The engine must take
 * it or give the peer up; it must not crash, and not hold more than the peer's window. It is built with small
 * sizes and under sanitizers. Frames as literal bytes come first. */
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/engine/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

#define CHECK(what)                                            \
    do {                                                       \
        if (!(what)) {                                         \
            printf("frames_fuzz.c:%d: %s\n", __LINE__, #what); \
            exit(1);                                           \
        }                                                      \
    } while (0)

static void a_head_is_these_bytes(void)
{
    static const unsigned char expected[] = {2,    1,    4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
                                             0x12, 0x11, 7, 0, 0, 0, 9,    0,    0,    0,    5,    0,
                                             0,    0,    0, 0, 0, 0, 5,    0,    0,    0};
    struct frame frame = {.kind = FRAME_HEAD,
                          .flags = FRAME_SYNC,
                          .id = 0x01020304,
                          .context = UINT64_C(0x1112131415161718),
                          .source = 7,
                          .tag = 9,
                          .bytes = 5,
                          .data = 5},
                 back;
    unsigned char bytes[FRAME_MOST_HEAD];
    CHECK(frame_encode(&frame, bytes) == sizeof expected && !memcmp(bytes, expected, sizeof expected));
    CHECK(frame_head_bytes(FRAME_HEAD) == sizeof expected && frame_decode(&back, bytes) == NULL);
    CHECK(back.id == frame.id && back.context == frame.context && back.source == 7 && back.tag == 9 &&
          back.data == 5);
    bytes[30] = 6; /* more data than the message has */
    CHECK(frame_decode(&back, bytes) != NULL);
    bytes[30] = 5, bytes[21] = 0x80; /* a negative tag */
    CHECK(frame_decode(&back, bytes) != NULL);
}

static void each_kind_comes_back(void)
{
    for (uint8_t kind = FRAME_DATA; kind <= FRAME_BYE; kind++) {
        struct frame frame = {.kind = kind, .counted = 1, .id = 77, .bytes = 99, .data = 13}, back;
        unsigned char bytes[FRAME_MOST_HEAD];
        CHECK(frame_encode(&frame, bytes) == frame_head_bytes(kind) && frame_decode(&back, bytes) == NULL);
        CHECK(back.kind == kind && (kind != FRAME_CREDIT || back.bytes == 99) &&
              (kind != FRAME_DATA || back.data == 13));
        CHECK((kind != FRAME_GRANT && kind != FRAME_MATCHED && kind != FRAME_DATA) || back.id == 77);
    }
    for (int kind = 0; kind < 256; kind++)
        CHECK((frame_head_bytes((uint8_t)kind) > 0) == (kind >= FRAME_HEAD && kind <= FRAME_BYE));
}

static const int32_t numbers[] = {0, 1};

/* Writes what an honest peer might send; returns its length. */
static size_t honest(unsigned char *bytes, size_t room)
{
    struct engine *engine = engine_new(2);
    struct channel channel = {.context = 4, .numbers = numbers, .size = 2};
    static struct operation sends[12];
    static char data[4000];
    CHECK(engine && !engine_channel_open(engine, &channel));
    engine_peer_up(engine, 1);
    for (size_t i = 0; i < sizeof sends / sizeof *sends; i++) {
        sends[i] = (struct operation){.channel = &channel,
                                      .source = 1,
                                      .tag = (int32_t)draw(3),
                                      .buffer = data,
                                      .room = draw(draw(3) ? 40 : 4000),
                                      .is_sync = draw(4) == 0};
        engine_send(engine, &sends[i], 0);
    }
    if (draw(2))
        engine_say_bye(engine);
    size_t have = 0;
    struct iovec pieces[8];
    for (int count; (count = engine_to_send(engine, 1, pieces, 8)) > 0;) {
        size_t n = 0;
        for (int i = 0; i < count && have + pieces[i].iov_len <= room; i++) {
            memcpy(bytes + have, pieces[i].iov_base, pieces[i].iov_len);
            have += pieces[i].iov_len, n += pieces[i].iov_len;
        }
        engine_sent(engine, 1, n);
        if (n == 0)
            break;
    }
    engine_channel_close(engine, &channel);
    engine_free(engine);
    return have;
}

static void feed(const unsigned char *bytes, size_t n)
{
    struct engine *engine = engine_new(2);
    struct channel channel = {.context = 4, .numbers = numbers, .size = 2};
    struct operation receives[4];
    char buffer[4][3000];
    CHECK(engine && !engine_channel_open(engine, &channel));
    for (int i = 0; i < 4; i++) {
        receives[i] = (struct operation){.channel = &channel,
                                         .source = draw(2) ? ANY : 0,
                                         .tag = draw(2) ? ANY : 1,
                                         .buffer = buffer[i],
                                         .room = sizeof buffer[i],
                                         .may_be_here = 1};
        if (draw(2))
            engine_post(engine, &receives[i]);
    }
    for (size_t at = 0; at < n;) {
        size_t some = 1 + draw((unsigned)(n - at)), room;
        void *into = draw(2) ? engine_read_target(engine, 0, &room) : NULL;
        if (into) {
            some = some < room ? some : room;
            memcpy(into, bytes + at, some);
            engine_read(engine, 0, some);
        } else if (engine_received(engine, 0, bytes + at, some)) {
            break;
        }
        at += some;
    }
    uint64_t held = 0;
    for (const struct message *m = channel.arrived; m; m = m->next)
        held += m->held_room;
    CHECK(held <= 4 * engine->peers[0].window);
    while (channel.posted)
        engine_cancel_receive(engine, channel.posted);
    engine_channel_close(engine, &channel);
    engine_free(engine);
}

int main(int argc, char **argv)
{
    unsigned long streams = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    static unsigned char bytes[60000];
    a_head_is_these_bytes();
    each_kind_comes_back();
    for (unsigned long i = 1; i <= streams; i++) {
        state = i * UINT64_C(0x9e3779b97f4a7c15);
        size_t n = honest(bytes, sizeof bytes);
        for (unsigned k = draw(4); k > 0 && n; k--) {
            size_t at = draw(2) ? draw((unsigned)n) : draw((unsigned)(n < 200 ? n : 200));
            bytes[at] = (unsigned char)(draw(2) ? draw(256) : bytes[at] ^ (1u << draw(8)));
        }
        feed(bytes, n);
    }
    printf("%lu damaged streams\n", streams);
    return 0;
}
