/* What a peer sends is damaged, cut anywhere, or drawn at random, while the program sends, receives and takes
 * back. The engine must take it or give the peer up; it must not crash, and not hold more than the peer's
 * window. It is built with small sizes and under sanitizers, with one of two drivers:
 *
 *     frames_fuzz STREAMS   streams of an honest engine, damaged; frames as literal bytes come first
 *     -DLIBFUZZER           libFuzzer's inputs (fuzz/run.sh): a length, so many choices, and what the peer
 *                           sends */
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/engine/state.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

/* Choices that the input makes; those behind its end are drawn. */
static const unsigned char *choices;
static size_t choices_left;

static unsigned draw(unsigned n)
{
    if (choices_left >= (n > 256 ? 2 : 1)) {
        unsigned choice = *choices++, wide = n > 256;
        if (wide)
            choice = choice << 8 | *choices++;
        choices_left -= 1 + wide;
        return choice % n;
    }
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

#define CHECK(what)                                                     \
    do {                                                                \
        if (!(what)) {                                                  \
            fprintf(stderr, "frames_fuzz.c:%d: %s\n", __LINE__, #what); \
            abort();                                                    \
        }                                                               \
    } while (0)

static const int32_t numbers[] = {0, 1};

enum { OPERATIONS = 48, CHANNELS = 2, ROOM = 3000 };

/* The program beside the peer, one call of it at a time. Channel 1 is opened late: what comes for it before
 * has no channel. */
static struct program {
    struct engine *engine;
    struct channel channels[CHANNELS];
    int is_open[CHANNELS];
    struct operation operations[OPERATIONS];
    unsigned used;
    char buffers[OPERATIONS][ROOM];
} program;

static void open_channel(int i)
{
    program.channels[i] = (struct channel){.context = 4 + (uint64_t)i, .numbers = numbers, .size = 2};
    program.is_open[i] = 1;
    CHECK(engine_channel_open(program.engine, &program.channels[i]) == 0);
}

static struct operation *operation(void)
{
    if (program.used == OPERATIONS)
        return NULL;
    struct operation *new = &program.operations[program.used];
    *new = (struct operation){.channel = &program.channels[draw(2) && program.is_open[1]],
                              .is_told = draw(2) != 0,
                              .buffer = program.buffers[program.used],
                              .room = draw(2) ? draw(40) : draw(ROOM)};
    program.used++;
    return new;
}

static void post(int is_reserved)
{
    struct operation *receive = operation(), found;
    if (!receive)
        return;
    receive->source = draw(2) ? ANY : 0;
    receive->tag = draw(2) ? ANY : (int32_t)draw(3);
    receive->may_be_native = receive->source == ANY;
    /* The engine then gets memory for it. */
    if (draw(4) == 0)
        receive->buffer = NULL;
    int is_there = engine_probe(receive->channel, receive->source, receive->tag, &found);
    if (!is_reserved)
        return engine_post(program.engine, receive);
    struct message *message = engine_reserve(receive->channel, receive->source, receive->tag, &found);
    CHECK(is_there == (message != NULL));
    if (message)
        engine_receive_reserved(program.engine, message, receive);
}

static void send_one(void)
{
    struct operation *send = operation();
    if (!send)
        return;
    send->source = 0;
    send->tag = (int32_t)draw(3);
    send->is_sync = draw(4) == 0;
    if (draw(4) == 0) {
        send->has_own_memory = 1;
        send->buffer = calloc(1, send->room ? send->room : 1);
    }
    engine_send(program.engine, send, 1);
}

static void write_some(void)
{
    struct iovec pieces[8];
    int count = engine_to_send(program.engine, 0, pieces, 8);
    size_t all = 0;
    for (int i = 0; i < count; i++) {
        /* The sanitizer sees a piece that is not there. */
        static unsigned char sink[FRAME_MOST_DATA + FRAME_MOST_INLINE + ROOM];
        memcpy(sink, pieces[i].iov_base, pieces[i].iov_len);
        all += pieces[i].iov_len;
    }
    CHECK(engine_has_to_send(program.engine, 0) || count == 0);
    if (count > 0)
        engine_sent(program.engine, 0, draw(2) ? all : draw((unsigned)all + 1));
}

static void take_back(void)
{
    struct operation *one = program.used ? &program.operations[draw(program.used)] : NULL;
    if (!one || one->state == OPERATION_DONE)
        return;
    if (!one->is_send)
        engine_cancel_receive(program.engine, one);
    else if (draw(2))
        engine_cancel_send(program.engine, one);
    else
        engine_copy(program.engine, one);
}

static void call(void)
{
    switch (draw(10)) {
    case 0:
        return post(0);
    case 1:
        return post(1);
    case 2:
        return send_one();
    case 3:
        return take_back();
    case 4:
        if (!program.is_open[1])
            open_channel(1);
        return;
    case 5:
        while (draw(4) && engine_take_done(program.engine))
            ;
        return;
    case 6:
        if (draw(8) == 0)
            engine_say_bye(program.engine);
        return;
    default:
        return write_some();
    }
}

static uint64_t held_by(const struct message *message)
{
    uint64_t held = 0;
    for (; message; message = message->next)
        held += message->held_room;
    return held;
}

static void begin(void)
{
    memset(&program, 0, offsetof(struct program, buffers));
    program.engine = engine_new(2);
    CHECK(program.engine);
    open_channel(0);
    if (draw(4))
        engine_peer_up(program.engine, 0);
    for (unsigned calls = draw(8); calls > 0; calls--)
        call();
}

static void end(void)
{
    uint64_t held = held_by(program.engine->orphans);
    for (int i = 0; i < CHANNELS; i++)
        held += program.is_open[i] ? held_by(program.channels[i].arrived) : 0;
    CHECK(held <= 4 * program.engine->peers[0].window);
    for (int i = 0; i < CHANNELS; i++) {
        if (!program.is_open[i])
            continue;
        while (program.channels[i].posted)
            engine_cancel_receive(program.engine, program.channels[i].posted);
        engine_channel_close(program.engine, &program.channels[i]);
    }
    engine_free(program.engine);
    for (unsigned i = 0; i < program.used; i++)
        if (!program.operations[i].is_send && program.operations[i].has_own_memory)
            free(program.operations[i].buffer);
}

static void feed(const unsigned char *bytes, size_t n)
{
    begin();
    for (size_t at = 0; at < n;) {
        size_t some = 1 + draw(n - at < 2000 ? (unsigned)(n - at) : 2000), room;
        void *into = draw(2) ? engine_read_target(program.engine, 0, &room) : NULL;
        if (into) {
            some = some < room ? some : room;
            memcpy(into, bytes + at, some);
            engine_read(program.engine, 0, some);
        } else if (engine_received(program.engine, 0, bytes + at, some)) {
            break;
        }
        at += some;
        if (draw(2))
            call();
    }
    end();
}

#ifdef LIBFUZZER

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

static void a_head_comes_back(const unsigned char *bytes, size_t n)
{
    struct frame frame;
    unsigned char again[FRAME_MOST_HEAD];
    size_t head = n ? frame_head_bytes(bytes[0]) : 0;
    if (head && head <= n && !frame_decode(&frame, bytes))
        CHECK(frame_encode(&frame, again) == head && !memcmp(again, bytes, head));
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
    if (n == 0)
        return 0;
    size_t chosen = bytes[0] < n - 1 ? bytes[0] : n - 1;
    choices = bytes + 1;
    choices_left = chosen;
    state = 0;
    a_head_comes_back(bytes + 1 + chosen, n - 1 - chosen);
    feed(bytes + 1 + chosen, n - 1 - chosen);
    return 0;
}

#else

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
        struct frame frame = {.kind = kind, .counted = 1, .id = 77, .bytes = 99, .heads = 5, .data = 13},
                     back;
        unsigned char bytes[FRAME_MOST_HEAD];
        CHECK(frame_encode(&frame, bytes) == frame_head_bytes(kind) && frame_decode(&back, bytes) == NULL);
        CHECK(back.kind == kind && (kind != FRAME_CREDIT || (back.bytes == 99 && back.heads == 5)) &&
              (kind != FRAME_DATA || back.data == 13));
        CHECK((kind != FRAME_GRANT && kind != FRAME_MATCHED && kind != FRAME_DATA) || back.id == 77);
    }
    for (int kind = 0; kind < 256; kind++)
        CHECK((frame_head_bytes((uint8_t)kind) > 0) == (kind >= FRAME_HEAD && kind <= FRAME_BYE));
}

/* Streams that end within a message, or are given up for one, leave nothing behind: the sanitizer sees it. */
static void what_had_begun_is_freed_once(void)
{
    for (int too_early = 0; too_early <= 1; too_early++)
        for (uint32_t from = 0; from <= 1; from++)
            for (uint32_t came = 0; came <= 3; came++) {
                struct frame head = {.kind = FRAME_HEAD, .id = 1, .context = 4, .source = from, .bytes = 3};
                struct frame data = {.kind = FRAME_DATA, .counted = 1, .id = 1, .data = 3};
                unsigned char bytes[2 * FRAME_MOST_HEAD + 3] = {0};
                struct engine *engine = engine_new(2);
                struct channel channel = {.context = 4, .numbers = numbers, .size = 2};
                size_t n = frame_encode(&head, bytes);
                n += frame_encode(&data, bytes + n) + came;
                CHECK(engine && (too_early || !engine_channel_open(engine, &channel)));
                int refused = engine_received(engine, 0, bytes, n);
                CHECK((refused != 0) == (!too_early && from == 1));
                CHECK(!too_early || !engine_channel_open(engine, &channel));
                uint32_t lost;
                CHECK((engine_lost(engine, &lost) != NULL) == (from == 1));
                engine_channel_close(engine, &channel);
                engine_free(engine);
            }
}

/* A number may name another message once all of the first is there, taken or not. */
static void a_number_is_free_once_its_message_is_there(int is_too_early)
{
    struct engine *engine = engine_new(2);
    struct channel channel = {.context = 4, .numbers = numbers, .size = 2};
    struct operation first = {.channel = &channel, .tag = ANY, .buffer = "", .room = 0}, second = first;
    unsigned char bytes[4 * FRAME_MOST_HEAD] = {0};
    struct frame head = {.kind = FRAME_HEAD, .id = 1, .context = 4, .bytes = 3};
    struct frame data = {.kind = FRAME_DATA, .counted = 1, .id = 1, .data = 3};
    size_t heads = frame_encode(&head, bytes);
    size_t n = heads + frame_encode(&data, bytes + heads) + 3;
    CHECK(engine && (is_too_early || !engine_channel_open(engine, &channel)));
    CHECK(!engine_received(engine, 0, bytes, n) && !engine_received(engine, 0, bytes, heads));
    if (is_too_early)
        return engine_free(engine);
    engine_post(engine, &first);
    engine_post(engine, &second);
    CHECK(first.state == OPERATION_DONE && second.state == OPERATION_MATCHED);
    CHECK(!engine_received(engine, 0, bytes + heads, n - heads) && second.state == OPERATION_DONE);
    engine_channel_close(engine, &channel);
    engine_free(engine);
}

/* Moves what process 0 has for process 1 until there is no more, and back. */
static void exchange(struct engine **engines)
{
    struct iovec pieces[8];
    for (int still = 0, from = 0; still < 2; from = 1 - from) {
        int count = engine_to_send(engines[from], (uint32_t)(1 - from), pieces, 8);
        size_t n = 0;
        for (int i = 0; i < count; i++) {
            CHECK(!engine_received(engines[1 - from], (uint32_t)from, pieces[i].iov_base, pieces[i].iov_len));
            n += pieces[i].iov_len;
        }
        engine_sent(engines[from], (uint32_t)(1 - from), n);
        still = count ? 0 : still + 1;
    }
}

/* Messages without data cost a peer something, too. An honest one waits until some have found a receive, and
 * none is lost when it ends meanwhile; one that does not wait is given up. */
static void empty_messages_are_bounded(void)
{
    enum { MANY = 3 * MOST_HEADS };
    static struct operation sends[MANY], receives[MANY];
    struct engine *engines[2] = {engine_new(2), engine_new(2)};
    struct channel channels[2] = {{.context = 4, .numbers = numbers, .size = 2},
                                  {.context = 4, .numbers = numbers, .size = 2}};
    for (int i = 0; i < 2; i++) {
        CHECK(engines[i] && !engine_channel_open(engines[i], &channels[i]));
        engine_peer_up(engines[i], (uint32_t)(1 - i));
    }
    for (int i = 0; i < MANY; i++) {
        sends[i] = (struct operation){.channel = &channels[0], .source = 1, .tag = i, .buffer = ""};
        engine_send(engines[0], &sends[i], 0);
    }
    engine_say_bye(engines[0]);
    exchange(engines);
    CHECK(engines[1]->peers[0].heads_may_come == 0 && !engine_bye_sent(engines[0], 1));
    /* The last of those that are here first: heads come free in any order. */
    for (int i = 0; i < MANY; i++) {
        int tag = i < MOST_HEADS ? MOST_HEADS - 1 - i : i;
        receives[i] = (struct operation){.channel = &channels[1], .source = 0, .tag = tag, .buffer = ""};
        engine_post(engines[1], &receives[i]);
        exchange(engines);
        CHECK(receives[i].state == OPERATION_DONE && receives[i].tag == tag);
    }
    engine_say_bye(engines[1]);
    exchange(engines);
    uint32_t lost;
    CHECK(engine_bye_came(engines[1], 0) && !engine_lost(engines[0], &lost) &&
          !engine_lost(engines[1], &lost));
    for (int i = 0; i < 2; i++) {
        engine_channel_close(engines[i], &channels[i]);
        engine_free(engines[i]);
    }

    struct engine *engine = engine_new(2);
    unsigned char bytes[FRAME_MOST_HEAD];
    CHECK(engine);
    for (uint32_t id = 0; id <= MOST_HEADS; id++) {
        size_t n = frame_encode(&(struct frame){.kind = FRAME_HEAD, .id = id, .context = 4}, bytes);
        CHECK((engine_received(engine, 0, bytes, n) != 0) == (id == MOST_HEADS));
    }
    CHECK(!strcmp(engine_lost(engine, &lost), "more messages than it has credit for"));
    engine_free(engine);
    engine = engine_new(2);
    size_t n = frame_encode(&(struct frame){.kind = FRAME_CREDIT, .heads = 1}, bytes);
    CHECK(engine && engine_received(engine, 0, bytes, n) != 0);
    engine_free(engine);
}

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

int main(int argc, char **argv)
{
    unsigned long streams = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    static unsigned char bytes[60000];
    a_head_is_these_bytes();
    each_kind_comes_back();
    what_had_begun_is_freed_once();
    a_number_is_free_once_its_message_is_there(0);
    a_number_is_free_once_its_message_is_there(1);
    empty_messages_are_bounded();
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

#endif
