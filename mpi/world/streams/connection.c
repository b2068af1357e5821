/* Sockets as such: the list of them, who they belong to, and what becomes of a peer when one ends. */
#include "world/streams/connection.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

struct streams streams;

int64_t streams_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct connection *connection_new(int fd, uint32_t peer)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) {
        close(fd);
        return NULL;
    }
    connection->kind = STREAM;
    connection->fd = fd;
    connection->peer = peer;
    connection->since_ms = peer == NO_PEER ? streams_now_ms() : 0;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(streams.epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(connection);
        close(fd);
        return NULL;
    }
    int on = 1;
    /* Failure costs speed, or notice of a dead host. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    connection->after = streams.first;
    if (streams.first)
        streams.first->before = connection;
    streams.first = connection;
    streams.strangers += peer == NO_PEER;
    return connection;
}

void connection_close(struct connection *connection)
{
    if (connection->fd < 0)
        return;
    close(connection->fd);
    connection->fd = -1;
    streams.full -= connection->full;
    streams.strangers -= connection->peer == NO_PEER;
    if (connection->before)
        connection->before->after = connection->after;
    else
        streams.first = connection->after;
    if (connection->after)
        connection->after->before = connection->before;
    connection->after = streams.closed;
    streams.closed = connection;
    if (connection->peer != NO_PEER) {
        struct peer_streams *peer = &streams.peers[connection->peer];
        if (peer->sending == connection)
            peer->sending = NULL;
        if (peer->other == connection)
            peer->other = NULL;
    }
}

void connection_wait(struct connection *connection)
{
    int full = connection->full || connection->connecting;
    struct epoll_event event = {.events = EPOLLIN | (full ? EPOLLOUT : 0), .data.ptr = connection};
    if (epoll_ctl(streams.epoll, EPOLL_CTL_MOD, connection->fd, &event) != 0)
        connection_ended(connection, strerror(errno));
}

void connection_ended(struct connection *connection, const char *reason)
{
    uint32_t number = connection->peer;
    int unused = connection->hello_received < HELLO_BYTES;
    connection_close(connection);
    if (number == NO_PEER)
        return;
    struct peer_streams *peer = &streams.peers[number];
    if (unused && !peer->sending && peer->other) {
        /* Nothing was sent on it, and the peer has opened one itself. */
        peer->sending = peer->other;
        peer->other = NULL;
        connection_write(peer->sending);
    } else {
        connection_judge(number, reason);
    }
}

void connection_judge(uint32_t number, const char *reason)
{
    struct peer_streams *peer = &streams.peers[number];
    if (peer->sending || !peer->up)
        return;
    /* What the peer sends may still come on the other one, its BYE too. What we would send cannot go. */
    if (peer->other && !engine_has_to_send(streams.engine, number))
        return;
    if (peer->other)
        connection_close(peer->other);
    peer->up = 0;
    engine_peer_lost(streams.engine, number, reason);
}

int connection_same_host(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
    if (one->ss_family != other->ss_family)
        return 0;
    if (one->ss_family == AF_INET)
        return ((const struct sockaddr_in *)one)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)other)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)one)->sin6_addr,
                  &((const struct sockaddr_in6 *)other)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

int connection_greeted(struct connection *connection)
{
    const struct world *world = streams.world;
    struct hello hello = hello_decode(connection->hello_in);
    if (hello.version != HELLO_VERSION || hello.world != world->number || hello.to != world->me ||
        hello.from >= world->size || world_is_here(world, hello.from))
        return -1;
    if (connection->peer != NO_PEER)
        return hello.from == connection->peer ? 0 : -1;
    if (!connection_same_host(&connection->from, &world->processes[hello.from].address))
        return -1;
    struct peer_streams *peer = &streams.peers[hello.from];
    /* Ours, which is not open yet, has carried nothing. */
    if (peer->sending && peer->sending->connecting)
        connection_close(peer->sending);
    if (peer->sending && peer->other)
        return -1;
    connection->peer = hello.from;
    streams.strangers--;
    if (peer->sending)
        peer->other = connection;
    else
        peer->sending = connection;
    hello_encode(&(struct hello){HELLO_VERSION, world->number, world->me, hello.from}, connection->hello_out);
    connection->hello_to_send = HELLO_BYTES;
    if (!peer->up)
        engine_peer_up(streams.engine, hello.from);
    peer->up = 1;
    return 0;
}
