#define _GNU_SOURCE
#include "world/streams/streams.h"
#include "world/streams/connection.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_EVENTS = 64, MOST_ACCEPTED = 64 };

static const char ENDED[] = "its connection has ended";

static int watch(struct connection *entry, enum kind kind, int fd)
{
    *entry = (struct connection){.kind = kind, .fd = fd, .peer = NO_PEER};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = entry};
    return epoll_ctl(streams.epoll, EPOLL_CTL_ADD, fd, &event);
}

int streams_start(const struct world *world, int listener, struct engine *engine)
{
    streams = (struct streams){.world = world, .engine = engine};
    streams.listener.fd = -1;
    streams.peers = calloc(world->size, sizeof *streams.peers);
    streams.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (streams.peers && streams.epoll >= 0 && watch(&streams.listener, LISTENER, listener) == 0)
        return 0;
    int error = streams.peers ? errno : ENOMEM;
    free(streams.peers);
    if (streams.epoll >= 0)
        close(streams.epoll);
    streams = (struct streams){0};
    errno = error;
    return -1;
}

int streams_watch(int descriptor, void (*ready)(void))
{
    streams.on_watched = ready;
    return watch(&streams.watched, WATCHED, descriptor);
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The peer compares a stream's source address with its table, so the stream must come from this address. */
static int bind_own(int fd)
{
    struct sockaddr_storage own = streams.world->processes[streams.world->me].address;
    if (own.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&own)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&own)->sin_port = 0;
    return bind(fd, (struct sockaddr *)&own, length_of(&own));
}

/* Returns a new connection to a peer, open or connecting; NULL with errno on failure. */
static struct connection *reach(uint32_t peer)
{
    const struct sockaddr_storage *address = &streams.world->processes[peer].address;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    int connected =
        bind_own(fd) == 0 ? connect(fd, (const struct sockaddr *)address, length_of(address)) : -1;
    if (connected != 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        errno = error;
        return NULL;
    }
    struct connection *connection = connection_new(fd, peer);
    if (connection)
        connection->connecting = connected != 0;
    return connection;
}

void streams_want(uint32_t number)
{
    struct peer_streams *peer = &streams.peers[number];
    const struct world *world = streams.world;
    if (peer->sending || number == world->me)
        return;
    /* The earlier stream has ended: a second one would not continue where that one was cut. */
    if (peer->up)
        return connection_judge(number, ENDED);
    struct connection *connection = reach(number);
    if (!connection)
        return engine_peer_lost(streams.engine, number, strerror(errno));
    hello_encode(&(struct hello){HELLO_VERSION, world->number, world->me, number}, connection->hello_out);
    connection->hello_to_send = HELLO_BYTES;
    peer->sending = connection;
    peer->up = 1;
    engine_peer_up(streams.engine, number);
    if (connection->connecting)
        connection_wait(connection);
    else
        connection_write(connection);
}

void streams_write(uint32_t peer)
{
    struct connection *connection = streams.peers[peer].sending;
    if (!connection)
        connection_judge(peer, ENDED);
    else if (!connection->full)
        connection_write(connection);
}

void streams_hear(uint32_t number)
{
    if (!engine_awaits(streams.engine, number))
        return;
    /* A connection that is closed meanwhile stays in memory until streams_progress ends. */
    struct connection *both[] = {streams.peers[number].sending, streams.peers[number].other};
    for (int i = 0; i < 2; i++)
        if (both[i] && both[i]->fd >= 0 && !both[i]->connecting)
            connection_read(both[i]);
    if (engine_has_to_send(streams.engine, number))
        streams_write(number);
}

int streams_unwritten(void) { return streams.full > 0; }

/* Counts the strangers from this one's host, from this one on in the list: all of them, if it is the
 * first. */
static size_t count_from_its_host(const struct connection *stranger)
{
    size_t count = 0;
    for (const struct connection *each = stranger; each; each = each->after)
        count += each->peer == NO_PEER && connection_same_host(&stranger->from, &each->from);
    return count;
}

/* Makes room for one more: the host that holds the most slots loses the oldest of them, so that a flood ends
 * its own connections first. It asks the kernel nothing, because in a flood it is called for every
 * connection. */
static void close_one_stranger(void)
{
    struct connection *oldest = NULL;
    size_t most = 0;
    for (struct connection *each = streams.first; each; each = each->after) {
        if (each->peer != NO_PEER)
            continue;
        size_t count = count_from_its_host(each);
        if (count > most) {
            most = count;
            oldest = each;
        }
        if (connection_same_host(&each->from, &oldest->from))
            oldest = each;
    }
    if (oldest)
        connection_close(oldest);
}

static void close_late_strangers(void)
{
    int64_t now = streams.strangers > 0 ? streams_now_ms() : 0;
    for (struct connection *each = streams.first, *next; each && streams.strangers > 0; each = next) {
        next = each->after;
        if (each->peer == NO_PEER && now - each->since_ms >= STRANGER_MS)
            connection_close(each);
    }
}

static void accept_some(void)
{
    for (int i = 0; i < MOST_ACCEPTED; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        int fd = accept4(streams.listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        /* The connection has already ended. */
        if (getpeername(fd, (struct sockaddr *)&from, &n) != 0) {
            close(fd);
            continue;
        }
        if (streams.strangers >= MOST_STRANGERS)
            close_one_stranger();
        struct connection *connection = connection_new(fd, NO_PEER);
        if (connection) {
            connection->from = from;
            connection_read(connection);
        }
    }
}

/* Called when connect() has succeeded or failed. */
static void on_connected(struct connection *connection)
{
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        error = errno;
    if (error != 0)
        return connection_ended(connection, strerror(error));
    connection->connecting = 0;
    connection_wait(connection);
    if (connection->fd >= 0)
        connection_write(connection);
}

static void on_event(const struct epoll_event *event)
{
    struct connection *connection = event->data.ptr;
    if (connection->fd < 0)
        return;
    if (connection->kind == LISTENER)
        return accept_some();
    if (connection->kind == WATCHED) {
        streams.on_watched();
        return;
    }
    if (connection->connecting)
        return on_connected(connection);
    if (event->events & EPOLLOUT)
        connection_write(connection);
    if (connection->fd >= 0 && event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        connection_read(connection);
}

/* Received bytes may have given the engine something to send, to this peer or another. */
static void write_all(void)
{
    for (struct connection *each = streams.first, *next; each; each = next) {
        next = each->after;
        if (each->peer != NO_PEER && engine_has_to_send(streams.engine, each->peer))
            streams_write(each->peer);
        /* A peer that is lost takes its other stream along: if that was `next`, the rest of the list no
         * longer follows it. */
        if (next && next->fd < 0)
            next = streams.first;
    }
}

static void free_closed(void)
{
    while (streams.closed) {
        struct connection *connection = streams.closed;
        streams.closed = connection->after;
        free(connection);
    }
}

int streams_progress(int wait_ms)
{
    struct epoll_event events[MOST_EVENTS];
    write_all();
    int count = epoll_wait(streams.epoll, events, MOST_EVENTS, wait_ms);
    if (count < 0 && errno != EINTR)
        return -1;
    for (int i = 0; i < count; i++)
        on_event(&events[i]);
    if (count > 0)
        write_all();
    close_late_strangers();
    free_closed();
    return count < 0 ? 0 : count;
}

int streams_said_bye(void)
{
    for (uint32_t i = 0; i < streams.world->size; i++) {
        const struct peer_streams *peer = &streams.peers[i];
        if ((peer->sending && !engine_bye_sent(streams.engine, i)) ||
            ((peer->sending || peer->other) && !engine_bye_came(streams.engine, i)))
            return 0;
    }
    /* When a socket with unread data is closed, the kernel discards its unsent data. */
    for (const struct connection *each = streams.first; each; each = each->after)
        if (each->peer != NO_PEER && each->hello_received < HELLO_BYTES)
            return 0;
    return 1;
}

void streams_stop(int most_ms)
{
    if (!streams.peers)
        return;
    int64_t until = streams_now_ms() + most_ms;
    while (!streams_said_bye()) {
        int64_t left = until - streams_now_ms();
        if (left <= 0 || streams_progress((int)left) < 0)
            break;
    }
    while (streams.first)
        connection_close(streams.first);
    free_closed();
    close(streams.listener.fd);
    close(streams.epoll);
    free(streams.peers);
    streams = (struct streams){0};
}
