/* Streams over loopback between two processes, each with a plain engine: in order both ways, opened by one or
 * by both, with wrong HELLOs, strangers, and ends that were not announced. */
#define _GNU_SOURCE
#include "world/streams/streams.h"
#include "plain_engine.h"
#include "world/streams/hello.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(holds)                                                                              \
    do {                                                                                          \
        if (!(holds)) {                                                                           \
            fprintf(stderr, "%s:%d: %s does not hold (%s)\n", __FILE__, __LINE__, #holds, scene); \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

/* A test that has not ended by then hangs. */
enum { PATIENCE_SECONDS = 30, LOOK_MS = 100 };

static const uint64_t NUMBER = 0x123456789abcdef0;
static const char *scene = "";
static int listeners[2];
static struct process processes[2];
static char *names[] = {"a", "b"};
static struct world world;
static struct engine engine;

static struct sockaddr_in address_of(const struct process *process)
{
    struct sockaddr_in address;
    memcpy(&address, &process->address, sizeof address);
    return address;
}

static int listener(const char *ip, struct sockaddr_storage *address)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(ip)};
    socklen_t n = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&own, n) == 0 && listen(fd, 500) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&own, &n) == 0);
    memset(address, 0, sizeof *address);
    memcpy(address, &own, sizeof own);
    return fd;
}

/* Two processes at two sites, the second on an address of its own. */
static void begin(const char *name)
{
    scene = name;
    for (uint32_t i = 0; i < 2; i++) {
        processes[i] = (struct process){.site = i};
        listeners[i] = listener(i == 0 ? "127.0.0.1" : "127.0.0.2", &processes[i].address);
    }
}

static void be(uint32_t me)
{
    world = (struct world){.number = NUMBER,
                           .size = 2,
                           .me = me,
                           .first_here = me,
                           .here = 1,
                           .site_count = 2,
                           .site_names = names,
                           .processes = processes};
    engine = (struct engine){.me = me};
    close(listeners[1 - me]);
    CHECK(streams_start(&world, listeners[me], &engine) == 0);
    alarm(PATIENCE_SECONDS);
}

/* The other process; 0 in it. */
static pid_t split(void)
{
    pid_t other = fork();
    CHECK(other >= 0);
    be(other == 0 ? 1 : 0);
    return other;
}

static void progress_until_received(uint32_t peer, uint64_t bytes)
{
    while (engine.peers[peer].received < bytes)
        CHECK(streams_progress(LOOK_MS) >= 0 && !engine.peers[peer].lost);
}

static void progress_until_lost(uint32_t peer)
{
    while (!engine.peers[peer].lost)
        CHECK(streams_progress(LOOK_MS) >= 0);
}

/* Ends in order; the other process exits here. */
static void end(pid_t other)
{
    uint32_t peer = 1 - world.me;
    engine_say_bye(&engine);
    streams_stop(PATIENCE_SECONDS * 1000);
    CHECK(engine_bye_came(&engine, peer) && engine_bye_sent(&engine, peer));
    CHECK(!engine.peers[peer].lost && !engine.wrong && engine.peers[peer].ups == 1);
    if (other == 0)
        exit(0);
    int status = 1;
    CHECK(waitpid(other, &status, 0) == other && status == 0);
}

enum { SOME = 1000, MUCH = 40 * 1000 * 1000 };

static void one_opens_and_both_send(void)
{
    begin("one opens");
    pid_t other = split();
    uint32_t peer = 1 - world.me;
    if (other != 0) {
        plain_send(&engine, peer, SOME);
        streams_want(peer);
        progress_until_received(peer, MUCH);
    } else {
        progress_until_received(peer, SOME);
        plain_send(&engine, peer, MUCH);
        streams_write(peer);
    }
    end(other);
}

/* Each has its connection under way before it makes progress, for the other one has a listener already. */
static void both_open_at_the_same_time(void)
{
    begin("both open");
    pid_t other = split();
    uint32_t peer = 1 - world.me;
    plain_send(&engine, peer, MUCH);
    streams_want(peer);
    streams_want(peer);
    progress_until_received(peer, MUCH);
    plain_send(&engine, peer, SOME);
    progress_until_received(peer, MUCH + SOME);
    end(other);
}

/* It asks for nothing but its sends; what it has for the peer waits for that one's word. */
static void one_that_only_sends_hears_what_the_other_says(void)
{
    begin("only sends");
    pid_t other = split();
    uint32_t peer = 1 - world.me;
    plain_send(&engine, peer, SOME);
    streams_want(peer);
    progress_until_received(peer, SOME);
    if (other != 0) {
        engine.peers[peer].awaits = 1;
        while (engine.peers[peer].received < 2 * SOME) {
            plain_send(&engine, peer, 1);
            streams_write(peer);
            streams_hear(peer);
        }
    } else {
        plain_send(&engine, peer, SOME);
        streams_write(peer);
    }
    end(other);
}

static void an_end_without_bye_is_a_loss(void)
{
    begin("no BYE");
    pid_t other = split();
    uint32_t peer = 1 - world.me;
    plain_send(&engine, peer, SOME);
    streams_want(peer);
    progress_until_received(peer, SOME);
    if (other == 0)
        _exit(0);
    progress_until_lost(peer);
    CHECK(engine.peers[peer].reason[0]);
    /* Told once, and no more is made of it. */
    plain_send(&engine, peer, SOME);
    streams_write(peer);
    CHECK(streams_progress(0) >= 0 && engine.peers[peer].lost == 1);
    streams_stop(0);
    CHECK(waitpid(other, NULL, 0) == other);
}

static void a_peer_that_is_killed_is_a_loss(void)
{
    begin("killed");
    pid_t other = split();
    uint32_t peer = 1 - world.me;
    plain_send(&engine, peer, MUCH);
    if (other == 0) {
        progress_until_received(peer, SOME);
        raise(SIGKILL);
    }
    streams_want(peer);
    progress_until_lost(peer);
    streams_stop(0);
    CHECK(waitpid(other, NULL, 0) == other);
}

static void nobody_at_the_address_is_a_loss(void)
{
    begin("nobody there");
    be(0);
    streams_want(1);
    progress_until_lost(1);
    CHECK(strstr(engine.peers[1].reason, strerror(ECONNREFUSED)));
    streams_stop(0);
}

static int dial(const char *from)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};
    struct sockaddr_in to = address_of(&processes[0]);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof own) == 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

/* Looks until the other end has closed. */
static void progress_until_closed(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (poll(&wait, 1, 0) == 0)
        CHECK(streams_progress(LOOK_MS) >= 0);
    char byte;
    CHECK(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static void a_wrong_hello_is_cut_off(void)
{
    begin("wrong HELLO");
    be(0);
    struct hello wrong[] = {
        {HELLO_VERSION + 1, NUMBER, 1, 0}, {HELLO_VERSION, NUMBER + 1, 1, 0},
        {HELLO_VERSION, NUMBER, 0, 0},     {HELLO_VERSION, NUMBER, 2, 0},
        {HELLO_VERSION, NUMBER, 1, 1},     {HELLO_VERSION, NUMBER, UINT32_MAX, 0},
    };
    unsigned char bytes[HELLO_BYTES];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int fd = dial("127.0.0.2");
        hello_encode(&wrong[i], bytes);
        CHECK(send(fd, bytes, sizeof bytes, 0) == sizeof bytes);
        progress_until_closed(fd);
    }
    /* The right one, from where this process is not. */
    int fd = dial("127.0.0.3");
    hello_encode(&(struct hello){HELLO_VERSION, NUMBER, 1, 0}, bytes);
    CHECK(send(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    progress_until_closed(fd);
    CHECK(engine.peers[1].ups == 0 && !engine.peers[1].lost);
    streams_stop(0);
}

/* And the right one, in pieces, is not; what follows it breaks the engine's rules. */
static void a_hello_in_pieces_is_taken_and_broken_frames_end_the_stream(void)
{
    begin("pieces");
    be(0);
    unsigned char bytes[HELLO_BYTES + 1];
    hello_encode(&(struct hello){HELLO_VERSION, NUMBER, 1, 0}, bytes);
    bytes[HELLO_BYTES] = 'x';
    int fd = dial("127.0.0.2");
    for (size_t i = 0; i < sizeof bytes; i++) {
        CHECK(send(fd, bytes + i, 1, 0) == 1);
        CHECK(streams_progress(LOOK_MS) >= 0);
    }
    progress_until_lost(1);
    CHECK(engine.peers[1].ups == 1 && strcmp(engine.peers[1].reason, "broken") == 0);
    unsigned char answer[HELLO_BYTES];
    CHECK(recv(fd, answer, sizeof answer, MSG_WAITALL) == sizeof answer);
    struct hello hello = hello_decode(answer);
    CHECK(hello.world == NUMBER && hello.from == 0 && hello.to == 1);
    progress_until_closed(fd);
    streams_stop(0);
}

static void whoever_answers_with_another_hello_is_no_peer(void)
{
    begin("wrong answer");
    be(0);
    struct sockaddr_storage other;
    int fd = listener("127.0.0.2", &other);
    processes[1].address = other;
    plain_send(&engine, 1, SOME);
    streams_want(1);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    CHECK(poll(&wait, 1, PATIENCE_SECONDS * 1000) == 1);
    int accepted = accept(fd, NULL, NULL);
    unsigned char bytes[HELLO_BYTES];
    hello_encode(&(struct hello){HELLO_VERSION, NUMBER + 1, 1, 0}, bytes);
    CHECK(accepted >= 0 && send(accepted, bytes, sizeof bytes, 0) == sizeof bytes);
    progress_until_lost(1);
    CHECK(strstr(engine.peers[1].reason, "no process of this world"));
    streams_stop(0);
    close(accepted);
    close(fd);
}

/* What the program sends waits until the other end has said who it is. */
static void nothing_is_sent_to_who_has_not_said_hello(void)
{
    begin("silent peer");
    be(0);
    struct sockaddr_storage other;
    int fd = listener("127.0.0.2", &other);
    processes[1].address = other;
    plain_send(&engine, 1, SOME);
    streams_want(1);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    CHECK(poll(&wait, 1, PATIENCE_SECONDS * 1000) == 1);
    int accepted = accept(fd, NULL, NULL);
    unsigned char bytes[HELLO_BYTES + 1];
    wait = (struct pollfd){.fd = accepted, .events = POLLIN};
    while (poll(&wait, 1, 0) == 0)
        CHECK(streams_progress(LOOK_MS) >= 0);
    /* Progress that could write more does not. */
    CHECK(streams_progress(0) >= 0 && streams_progress(0) >= 0);
    CHECK(recv(accepted, bytes, sizeof bytes, MSG_DONTWAIT) == HELLO_BYTES);
    CHECK(recv(accepted, bytes, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    hello_encode(&(struct hello){HELLO_VERSION, NUMBER, 1, 0}, bytes);
    CHECK(send(accepted, bytes, HELLO_BYTES, 0) == HELLO_BYTES);
    while (poll(&wait, 1, 0) == 0)
        CHECK(streams_progress(LOOK_MS) >= 0);
    CHECK(recv(accepted, bytes, 1, 0) == 1 && !engine.peers[1].lost);
    streams_stop(0);
    close(accepted);
    close(fd);
}

/* The places of strangers are full of one host's, and a peer of another one has said half of its HELLO. */
static void a_flood_ends_its_own_connections_and_no_peers(void)
{
    begin("flood");
    be(0);
    unsigned char bytes[HELLO_BYTES];
    hello_encode(&(struct hello){HELLO_VERSION, NUMBER, 1, 0}, bytes);
    int slow = dial("127.0.0.2");
    CHECK(send(slow, bytes, HELLO_BYTES / 2, 0) == HELLO_BYTES / 2);
    int silent[300];
    for (int i = 0; i < 300; i++) {
        silent[i] = dial("127.0.0.3");
        CHECK(streams_progress(0) >= 0);
    }
    int closed = 0;
    for (int i = 0; i < 300; i++) {
        char byte;
        closed += recv(silent[i], &byte, 1, MSG_DONTWAIT) == 0;
    }
    CHECK(closed >= 300 - 128);
    CHECK(send(slow, bytes + HELLO_BYTES / 2, HELLO_BYTES - HELLO_BYTES / 2, 0) > 0);
    while (engine.peers[1].ups == 0)
        CHECK(streams_progress(LOOK_MS) >= 0);
    CHECK(recv(slow, bytes, sizeof bytes, MSG_WAITALL) == HELLO_BYTES);
    for (int i = 0; i < 300; i++)
        close(silent[i]);
    close(slow);
    progress_until_lost(1);
    streams_stop(0);
}

static void silent_strangers_keep_nobody_out(void)
{
    begin("strangers");
    pid_t other = split();
    uint32_t peer = 1 - world.me;
    if (other == 0) {
        int silent[300];
        for (int i = 0; i < 300; i++)
            silent[i] = dial("127.0.0.3");
        plain_send(&engine, peer, SOME);
        streams_want(peer);
        progress_until_received(peer, SOME);
        for (int i = 0; i < 300; i++)
            close(silent[i]);
    } else {
        progress_until_received(peer, SOME);
        plain_send(&engine, peer, SOME);
    }
    end(other);
}

static int heard;

static void on_watched(void) { heard = 1; }

static void another_descriptor_is_watched(void)
{
    begin("watched");
    be(0);
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0 && streams_watch(ends[0], on_watched) == 0);
    CHECK(streams_progress(0) == 0 && !heard);
    CHECK(write(ends[1], "x", 1) == 1 && streams_progress(LOOK_MS) == 1 && heard);
    streams_stop(0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    for (int i = 0; i < 20; i++)
        both_open_at_the_same_time();
    one_that_only_sends_hears_what_the_other_says();
    one_opens_and_both_send();
    an_end_without_bye_is_a_loss();
    a_peer_that_is_killed_is_a_loss();
    nobody_at_the_address_is_a_loss();
    a_wrong_hello_is_cut_off();
    a_hello_in_pieces_is_taken_and_broken_frames_end_the_stream();
    whoever_answers_with_another_hello_is_no_peer();
    nothing_is_sent_to_who_has_not_said_hello();
    a_flood_ends_its_own_connections_and_no_peers();
    silent_strangers_keep_nobody_out();
    another_descriptor_is_watched();
    printf("streams: all right\n");
    return 0;
}
