/* Bytes between a socket and the engine. */
#include "world/streams/connection.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    READ_BYTES = 256 * 1024,
    /* Reads of one socket in one look, and writes: the others are to have theirs. */
    MOST_READS = 16,
    MOST_WRITES = 16,
    MOST_PIECES = 64,
};

/* Why recv or send has not done all, or NULL where it is only a matter of time. */
static const char *failure(ssize_t result)
{
    if (result == 0)
        return "it closed the connection before MPI_Finalize";
    return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
}

/* Takes the peer's HELLO; 0 when it is there. */
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

/* Hands one read to the engine; 0 when there may be more. */
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
        /* Ours goes back, and what has waited for a stream. */
        connection_write(connection);
    }
    for (int i = 0; i < MOST_READS && connection->fd >= 0; i++)
        if (read_some(connection) != 0)
            return;
}

/* Notes whether the socket has taken all. */
static void set_full(struct connection *connection, int full)
{
    if (connection->fd < 0 || connection->full == full)
        return;
    connection->full = full;
    streams.full += full ? 1 : -1;
    connection_wait(connection);
}

/* Our HELLO; 0 when it is out. */
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
    /* Nothing of the program's goes to who has not said that it is the peer. */
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
