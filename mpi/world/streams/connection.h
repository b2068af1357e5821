/* One socket of the streams, and the tables of all. Internal to this folder. */
#ifndef CAUSEWAY_WORLD_STREAMS_CONNECTION_H
#define CAUSEWAY_WORLD_STREAMS_CONNECTION_H

#include "world/engine/engine.h"
#include "world/streams/hello.h"
#include "world/world.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    /* A connection whose peer is not known yet. */
    NO_PEER = UINT32_MAX,
    /* The limit of connections on which no HELLO has arrived. When more come, the oldest one of the host that
     * has the most is closed. */
    MOST_STRANGERS = 128,
    /* How long such a connection may last: peers send HELLO at once. */
    STRANGER_MS = 10000,
};

enum kind { LISTENER, WATCHED, STREAM };

struct connection {
    enum kind kind;
    int fd;
    /* The process at the other end; NO_PEER until it has said who it is. */
    uint32_t peer;
    /* When it was accepted, and from where, as long as its peer is not known. */
    int64_t since_ms;
    struct sockaddr_storage from;
    /* Whether connect() is still in progress. */
    int connecting;
    /* Whether it waits until the socket accepts more. */
    int full;
    unsigned char hello_in[HELLO_BYTES], hello_out[HELLO_BYTES];
    size_t hello_received, hello_sent, hello_to_send;
    /* The list of all connections. A closed one stays in `closed` until streams_progress ends, because the
     * same epoll_wait may have returned an event for it. */
    struct connection *before, *after;
};

/* A peer's connections: two if both ends have opened one at the same time. */
struct peer_streams {
    /* The only one on which we send. */
    struct connection *sending;
    struct connection *other;
    /* Whether the engine has been told that the peer is up. */
    int up;
};

struct streams {
    const struct world *world;
    struct engine *engine;
    int epoll;
    struct peer_streams *peers;
    struct connection *first, *closed;
    struct connection listener, watched;
    void (*on_watched)(void);
    size_t strangers;
    /* The number of sockets that wait for room. */
    int full;
};

extern struct streams streams;

/* A monotonic clock. */
int64_t streams_now_ms(void);

/* Adds a socket to the list and to epoll. On failure closes it, and returns NULL. */
struct connection *connection_new(int fd, uint32_t peer);
/* Closes a connection, without telling the engine. */
void connection_close(struct connection *connection);
/* Tells epoll what to wait for: always input, and room if the socket is full or connecting. */
void connection_wait(struct connection *connection);

/* Called when a connection has ended, for this reason: the peer is lost if it has no other. */
void connection_ended(struct connection *connection, const char *reason);
/* Declares a peer lost if it was up and nothing can be sent to it any more, unless it may still say BYE and
 * there is nothing to send. */
void connection_judge(uint32_t peer, const char *reason);
/* Whether two addresses belong to the same host. */
int connection_same_host(const struct sockaddr_storage *one, const struct sockaddr_storage *other);
/* Called when HELLO is complete. Returns 0 if it is right: the connection then belongs to its peer; otherwise
 * -1. */
int connection_greeted(struct connection *connection);

/* Reads what has arrived, up to a limit that leaves the other connections their turn. */
void connection_read(struct connection *connection);
/* Writes what the engine has to send. */
void connection_write(struct connection *connection);

#endif
