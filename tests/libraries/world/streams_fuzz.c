/* Whoever connects to a process of a world, and what it sends: HELLOs, right and wrong, frames, silence, from
 * any host and at any time, while the program sends and receives. The tables stay what they are said to be,
 * strangers few, and nothing of the program's goes to who has not said that it is the peer.
 *
 * The input is a program of a byte for each operation and those that it takes. libFuzzer drives it, or
 * fuzz_random.c. */
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/frames/frames.h"
#include "world/streams/connection.h"
#include "world/streams/streams.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CHECK(what)                                                      \
    do {                                                                 \
        if (!(what)) {                                                   \
            fprintf(stderr, "streams_fuzz.c:%d: %s\n", __LINE__, #what); \
            abort();                                                     \
        }                                                                \
    } while (0)

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

enum {
    PROCESSES = 4,
    ME = 1,
    FIRST_THERE = 2,
    HOSTS = 4,
    UNKNOWN_HOST = 3,
    ENDS = 180,
    MOST_FILES = 1024,
    OPERATIONS = 32,
    ROOM = 2000,
    /* Little, so that a socket is full soon. */
    SEND_ROOM = 4096
};

static const uint64_t NUMBER = 0x123456789abcdef0;
static const int32_t numbers[PROCESSES] = {0, 1, 2, 3};

/* The other end of a socket. */
struct end {
    int near, far;
    /* Where it comes from; of one that we have opened, to whom it leads. */
    unsigned host;
    uint32_t opened_to;
    int was_asked;
    unsigned char first[HELLO_BYTES], came[HELLO_BYTES];
    size_t sent, received;
};

static struct {
    struct process processes[PROCESSES];
    struct world world;
    struct engine *engine;
    struct channel channel;
    struct operation operations[OPERATIONS];
    unsigned used;
    struct end ends[ENDS];
    unsigned end_count;
    /* The last one that had this descriptor. */
    struct end *by_near[MOST_FILES];
    /* Ends from here on are not accepted yet. Those that we have opened are passed over. */
    unsigned accepted;
    int listener;
    int64_t now_ms;
    uint32_t wanted;
    unsigned connecting;
    const unsigned char *left;
    size_t n;
} run;

static char buffers[OPERATIONS][ROOM];

static unsigned take(void)
{
    if (run.n == 0)
        return 0;
    run.n--;
    return *run.left++;
}

static struct sockaddr_storage address_of(unsigned host)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(4000)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(4000)};
    v4.sin_addr.s_addr = htonl(0x0a000001 + host);
    v6.sin6_addr.s6_addr[0] = 0xfd;
    v6.sin6_addr.s6_addr[15] = (unsigned char)host;
    if (host % 2)
        memcpy(&address, &v6, sizeof v6);
    else
        memcpy(&address, &v4, sizeof v4);
    return address;
}

/* Processes 2 and 3 are on hosts 0 and 1. */
static int is_of_host(uint32_t process, unsigned host)
{
    return host != UNKNOWN_HOST && process == FIRST_THERE + host;
}

static struct end *new_end(unsigned host, uint32_t opened_to)
{
    int pair[2], room = SEND_ROOM;
    if (run.end_count == ENDS)
        return NULL;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    struct end *end = &run.ends[run.end_count++];
    CHECK(pair[0] < MOST_FILES);
    run.by_near[pair[0]] = end;
    *end = (struct end){.near = pair[0], .far = pair[1], .host = host, .opened_to = opened_to};
    return end;
}

int fuzz_socket(int family, int type, int protocol)
{
    CHECK(family == run.processes[run.wanted].address.ss_family && type & SOCK_NONBLOCK && protocol == 0);
    const struct end *end = new_end(UNKNOWN_HOST, run.wanted);
    errno = EMFILE;
    return end ? end->near : -1;
}

int fuzz_bind(int fd, const struct sockaddr *address, socklen_t n)
{
    CHECK(fd >= 0 && n > 0 && address->sa_family == run.processes[ME].address.ss_family);
    return 0;
}

int fuzz_connect(int fd, const struct sockaddr *address, socklen_t n)
{
    CHECK(fd >= 0 && memcmp(address, &run.processes[run.wanted].address, n) == 0);
    errno = run.connecting == 1 ? EINPROGRESS : ECONNREFUSED;
    return run.connecting == 0 ? 0 : -1;
}

/* What became of a connection. */
int fuzz_getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
    int error = run.now_ms % 3 == 0 ? 0 : ECONNREFUSED;
    CHECK(fd >= 0 && level == SOL_SOCKET && name == SO_ERROR && *n == sizeof error);
    memcpy(value, &error, sizeof error);
    return 0;
}

int fuzz_accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
    uint64_t count;
    CHECK(fd == run.listener && !address && !n && flags == (SOCK_NONBLOCK | SOCK_CLOEXEC));
    while (run.accepted < run.end_count) {
        const struct end *end = &run.ends[run.accepted++];
        if (end->opened_to == NO_PEER)
            return end->near;
    }
    CHECK(read(run.listener, &count, sizeof count) == sizeof count || errno == EAGAIN);
    errno = EAGAIN;
    return -1;
}

int fuzz_getpeername(int fd, struct sockaddr *address, socklen_t *n)
{
    CHECK(fd >= 0 && fd < MOST_FILES && *n >= sizeof(struct sockaddr_storage));
    struct end *end = run.by_near[fd];
    /* Once for each: a flood that crowds itself out costs no more. */
    CHECK(!end || !end->was_asked++);
    if (end && end->opened_to == NO_PEER && end->host != UNKNOWN_HOST) {
        struct sockaddr_storage host = address_of(end->host);
        memcpy(address, &host, sizeof host);
        return 0;
    }
    errno = ENOTCONN;
    return -1;
}

int fuzz_clock_gettime(clockid_t clock, struct timespec *now)
{
    CHECK(clock == CLOCK_MONOTONIC);
    *now = (struct timespec){.tv_sec = run.now_ms / 1000, .tv_nsec = run.now_ms % 1000 * 1000000};
    return 0;
}

static void say(struct end *end, const unsigned char *bytes, size_t n)
{
    ssize_t sent = end->far < 0 ? 0 : send(end->far, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    for (ssize_t i = 0; i < sent; i++, end->sent++)
        if (end->sent < HELLO_BYTES)
            end->first[end->sent] = bytes[i];
}

static void say_hello(struct end *end)
{
    unsigned char bytes[HELLO_BYTES];
    unsigned change = take();
    struct hello hello = {HELLO_VERSION, NUMBER, change & 3, ME};
    if (change & 4)
        hello.version = (uint8_t)take();
    if (change & 8)
        hello.world ^= take();
    if (change & 16)
        hello.to = take();
    if (change & 32)
        hello.from = take();
    hello_encode(&hello, bytes);
    say(end, bytes, change & 64 ? take() % (HELLO_BYTES + 1) : HELLO_BYTES);
}

static void say_frame(struct end *end)
{
    unsigned char bytes[FRAME_MOST_HEAD + 256] = {0};
    unsigned kind = take(), detail = take();
    struct frame frame = {.kind = (uint8_t)(kind % 6 + FRAME_HEAD),
                          .flags = detail & 1,
                          .counted = detail >> 1 & 1,
                          .id = detail >> 2 & 7,
                          .context = 4 + (detail >> 5 & 1),
                          .source = detail & 64                ? take()
                                    : is_of_host(3, end->host) ? 3
                                                               : 2,
                          .tag = (int32_t)(kind / 6 & 3),
                          .bytes = take()};
    frame.data = detail & 128 || frame.kind == FRAME_DATA ? (uint32_t)frame.bytes : 0;
    size_t n = frame_encode(&frame, bytes);
    say(end, bytes, n + frame.data);
}

/* Whether its first bytes are those of the process that it comes from, or leads to. */
static int is_peer(const struct end *end)
{
    unsigned char right[HELLO_BYTES];
    for (uint32_t from = FIRST_THERE; from < PROCESSES; from++) {
        hello_encode(&(struct hello){HELLO_VERSION, NUMBER, from, ME}, right);
        if (end->sent >= HELLO_BYTES && memcmp(end->first, right, HELLO_BYTES) == 0 &&
            (end->opened_to == from || (end->opened_to == NO_PEER && is_of_host(from, end->host))))
            return 1;
    }
    return 0;
}

static void hear(struct end *end)
{
    unsigned char bytes[512];
    ssize_t n = end->far < 0 ? 0 : recv(end->far, bytes, sizeof bytes, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++, end->received++)
        if (end->received < HELLO_BYTES)
            end->came[end->received] = bytes[i];
    if (end->received == 0)
        return;
    uint32_t to = end->opened_to == NO_PEER ? FIRST_THERE + end->host : end->opened_to;
    unsigned char right[HELLO_BYTES];
    hello_encode(&(struct hello){HELLO_VERSION, NUMBER, ME, to}, right);
    size_t known = end->received < HELLO_BYTES ? end->received : HELLO_BYTES;
    CHECK(memcmp(end->came, right, known) == 0);
    CHECK(is_peer(end) || (end->opened_to != NO_PEER && end->received <= HELLO_BYTES));
}

static struct operation *operation(void)
{
    if (run.used == OPERATIONS)
        return NULL;
    struct operation *new = &run.operations[run.used];
    *new =
        (struct operation){.channel = &run.channel, .buffer = buffers[run.used], .room = 8 * take() % ROOM};
    run.used++;
    return new;
}

static void send_one(void)
{
    struct operation *send = operation();
    if (!send)
        return;
    unsigned how = take();
    send->source = (int32_t)(FIRST_THERE + (how & 1));
    send->tag = (int32_t)(how >> 2 & 3);
    send->is_sync = how >> 1 & 1;
    engine_send(run.engine, send, ME);
    if (how & 16) {
        run.wanted = (uint32_t)send->source;
        streams_want(run.wanted);
    }
    streams_write((uint32_t)send->source);
    if (how & 32)
        engine_copy(run.engine, send);
}

static void receive_one(void)
{
    struct operation *receive = operation();
    if (!receive)
        return;
    unsigned how = take();
    receive->source = how & 1 ? ANY : (int32_t)(FIRST_THERE + (how >> 1 & 1));
    receive->tag = how & 4 ? ANY : (int32_t)(how >> 3 & 3);
    engine_post(run.engine, receive);
}

static void connect_some(void)
{
    unsigned how = take(), host = how % HOSTS;
    uint64_t one = 1;
    /* Seldom many at once: sockets are what takes time here. */
    for (unsigned count = how >= 0xe0 ? 8 * (how >> 2 & 7) : 1; count > 0; count--)
        new_end(host, NO_PEER);
    CHECK(write(run.listener, &one, sizeof one) == sizeof one);
}

static void check_tables(void)
{
    size_t strangers = 0;
    int full = 0;
    for (const struct connection *each = streams.first; each; each = each->after) {
        CHECK(each->kind == STREAM && each->fd >= 0 && (!each->after || each->after->before == each));
        strangers += each->peer == NO_PEER;
        full += each->full;
        if (each->peer == NO_PEER)
            continue;
        const struct peer_streams *peer = &streams.peers[each->peer];
        CHECK(each->peer < PROCESSES && !world_is_here(&run.world, each->peer));
        CHECK((peer->sending == each) != (peer->other == each));
    }
    CHECK(strangers == streams.strangers && strangers <= MOST_STRANGERS && full == streams.full);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        const struct peer_streams *peer = &streams.peers[i];
        CHECK(!peer->sending || (peer->sending->peer == i && peer->sending->fd >= 0));
        CHECK(!peer->other || (peer->other->peer == i && peer->other->fd >= 0));
        /* What can go has gone: nothing else would have the next streams_progress go on with it. */
        CHECK(!peer->sending || peer->sending->full || peer->sending->hello_received < HELLO_BYTES ||
              !engine_has_to_send(run.engine, i));
    }
}

static void close_far(struct end *end)
{
    hear(end);
    if (end->far >= 0)
        close(end->far);
    end->far = -1;
}

/* What the program does. */
static void call(unsigned operation)
{
    switch (operation) {
    case 0:
        return send_one();
    case 1:
        return receive_one();
    case 2:
        run.wanted = FIRST_THERE + (take() & 1);
        run.connecting = take() % 3;
        return streams_want(run.wanted);
    case 3:
        return streams_write(FIRST_THERE + (take() & 1));
    case 4:
        return engine_say_bye(run.engine);
    case 5:
        run.now_ms += 100 * take();
        return;
    default:
        CHECK(streams_progress(0) >= 0);
        return check_tables();
    }
}

/* What others do. */
static void happen(unsigned operation)
{
    if (operation == 0 || run.end_count == 0)
        return connect_some();
    struct end *end = &run.ends[take() % run.end_count];
    size_t n;
    switch (operation) {
    case 1:
    case 2:
        return say_hello(end);
    case 3:
    case 4:
        return say_frame(end);
    case 5:
        n = take();
        n = n < run.n ? n : run.n;
        say(end, run.left, n);
        run.left += n;
        run.n -= n;
        return;
    case 6:
        return close_far(end);
    default:
        return hear(end);
    }
}

static void begin(const unsigned char *bytes, size_t n)
{
    memset(&run, 0, sizeof run);
    run.left = bytes;
    run.n = n;
    run.wanted = FIRST_THERE;
    for (uint32_t i = 0; i < PROCESSES; i++)
        run.processes[i] = (struct process){.site = i / FIRST_THERE,
                                            .native_rank = i % FIRST_THERE,
                                            .address = address_of(i < FIRST_THERE ? 8 + i : i - FIRST_THERE)};
    run.world = (struct world){.number = NUMBER,
                               .size = PROCESSES,
                               .me = ME,
                               .here = FIRST_THERE,
                               .site_count = 2,
                               .processes = run.processes};
    run.channel = (struct channel){.context = 4, .numbers = numbers, .size = PROCESSES};
    run.engine = engine_new(PROCESSES);
    run.listener = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(run.engine && run.listener >= 0 && engine_channel_open(run.engine, &run.channel) == 0);
    CHECK(streams_start(&run.world, run.listener, run.engine) == 0);
}

static void end(void)
{
    CHECK(streams_progress(0) >= 0);
    check_tables();
    streams_said_bye();
    streams_stop(0);
    for (unsigned i = 0; i < run.end_count; i++) {
        if (i >= run.accepted && run.ends[i].opened_to == NO_PEER)
            close(run.ends[i].near);
        close_far(&run.ends[i]);
    }
    while (run.channel.posted)
        engine_cancel_receive(run.engine, run.channel.posted);
    engine_channel_close(run.engine, &run.channel);
    engine_free(run.engine);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
    begin(bytes, n);
    while (run.n > 0) {
        unsigned operation = take();
        if (operation & 8)
            happen(operation & 7);
        else
            call(operation & 7);
    }
    end();
    return 0;
}
