/* Connections: the list of all, the peer of each, its bytes between the kernel and the engine,
 * and what becomes of a peer when one ends. */
#include "world/streams/connection.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_BYTES = 256 * 1024,
    /* Limits of reads and writes of one socket in one streams_progress, so that the others get their turn. */
    MOST_READS = 16,
    MOST_WRITES = 16,
    MOST_PIECES = 64,
};

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
    /* A failure here only costs speed, or notice of a dead host. */
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
        /* Nothing was sent on this connection, and the peer has opened one itself. */
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
    /* What the peer sends, including its BYE, may still arrive on the other connection. What we have to send
     * cannot be sent. */
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
    /* Our own connection, which is not open yet, has carried nothing. */
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

/* Why recv or send has failed, or NULL if it only has to be tried again later. */
static const char *failure(ssize_t result)
{
    if (result == 0)
        return "it closed the connection before MPI_Finalize";
    return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
}

/* Reads the peer's HELLO; returns 0 when it is complete. */
static int read_hello(struct connection *connection)
{
    size_t *have = &connection->hello_received;
    while (*have < HELLO_BYTES) {
        ssize_t received =
            recv(connection->fd, connection->hello_in + *have, HELLO_BYTES - *have, MSG_DONTWAIT);
        if (received <= 0) {
            const char *reason = failure(received);
            if (reason)
                connection_ended(connection, reason);
            return -1;
        }
        *have += (size_t)received;
    }
    if (connection_greeted(connection) != 0) {
        connection_ended(connection, "it is no process of this world");
        return -1;
    }
    return 0;
}

/* Passes the bytes of one read to the engine; returns 0 if there may be more. */
static int read_some(struct connection *connection)
{
    static unsigned char buffer[READ_BYTES];
    size_t room = 0;
    uint32_t peer = connection->peer;
    void *target = engine_read_target(streams.engine, peer, &room);
    int direct = target && room > 0;
    if (!direct) {
        target = buffer;
        room = sizeof buffer;
    }
    ssize_t received = recv(connection->fd, target, room, MSG_DONTWAIT);
    if (received <= 0) {
        const char *reason = failure(received);
        if (reason)
            connection_ended(connection, reason);
        return -1;
    }
    if (direct) {
        engine_read(streams.engine, peer, (size_t)received);
    } else if (engine_received(streams.engine, peer, buffer, (size_t)received) != 0) {
        struct peer_streams *both = &streams.peers[peer];
        if (both->other)
            connection_close(both->other);
        if (both->sending)
            connection_close(both->sending);
        return -1;
    }
    return (size_t)received < room ? -1 : 0;
}

void connection_read(struct connection *connection)
{
    if (connection->hello_received < HELLO_BYTES) {
        if (read_hello(connection) != 0)
            return;
        /* Sends our HELLO back, and what has waited for a stream. */
        connection_write(connection);
    }
    for (int i = 0; i < MOST_READS && connection->fd >= 0; i++)
        if (read_some(connection) != 0)
            return;
}

/* Records whether the socket is full. */
static void set_full(struct connection *connection, int full)
{
    if (connection->fd < 0 || connection->full == full)
        return;
    connection->full = full;
    streams.full += full ? 1 : -1;
    connection_wait(connection);
}

/* Writes our HELLO; returns 0 when it is completely written. */
static int write_hello(struct connection *connection)
{
    while (connection->hello_sent < connection->hello_to_send) {
        ssize_t sent = send(connection->fd, connection->hello_out + connection->hello_sent,
                            connection->hello_to_send - connection->hello_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            const char *reason = failure(sent);
            if (reason)
                connection_ended(connection, reason);
            else
                set_full(connection, 1);
            return -1;
        }
        connection->hello_sent += (size_t)sent;
    }
    return connection->hello_to_send > 0 ? 0 : -1;
}

void connection_write(struct connection *connection)
{
    if (connection->fd < 0 || connection->connecting || write_hello(connection) != 0)
        return;
    uint32_t peer = connection->peer;
    /* No data of the program is sent to an end that has not said that it is the peer. */
    if (streams.peers[peer].sending != connection || connection->hello_received < HELLO_BYTES)
        return set_full(connection, 0);
    struct iovec pieces[MOST_PIECES];
    for (int i = 0; i < MOST_WRITES; i++) {
        int count = engine_to_send(streams.engine, peer, pieces, MOST_PIECES);
        if (count <= 0)
            return set_full(connection, 0);
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
        ssize_t sent = sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            const char *reason = failure(sent);
            if (reason)
                return connection_ended(connection, reason);
            break;
        }
        engine_sent(streams.engine, peer, (size_t)sent);
    }
    set_full(connection, 1);
}
