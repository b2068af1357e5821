/* One socket of streams, and the tables of all. Internal to this folder. */
#ifndef CAUSEWAY_WORLD_STREAMS_CONNECTION_H
#define CAUSEWAY_WORLD_STREAMS_CONNECTION_H

#include "world/engine/engine.h"
#include "world/streams/hello.h"
#include "world/world.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    /* Nobody's yet. */
    NO_PEER = UINT32_MAX,
    /* Connections that have not said HELLO; when more come, the oldest of the host that has the most goes. */
    MOST_STRANGERS = 128,
    /* Peers say it at once. */
    STRANGER_MS = 10000,
};

enum kind { LISTENER, WATCHED, STREAM };

struct connection {
    enum kind kind;
    int fd;
    /* The process at the other end; NO_PEER while it has not said so. */
    uint32_t peer;
    /* When it came and where from, for as long as it is nobody's. */
    int64_t since_ms;
    struct sockaddr_storage from;
    /* connect() has not ended yet. */
    int connecting;
    /* Waits for the socket to take more. */
    int full;
    unsigned char hello_in[HELLO_BYTES], hello_out[HELLO_BYTES];
    size_t hello_received, hello_sent, hello_to_send;
    /* The list of all. A closed one stays in `closed` until streams_progress ends: the kernel may have told
     * of it in the same breath. */
    struct connection *before, *after;
};

/* A peer's connections: two where both have opened at the same time. */
struct peer_streams {
    /* What we send goes on this one alone. */
    struct connection *sending;
    struct connection *other;
    /* The engine was told that it is up. */
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
    /* Sockets that wait for room. */
    int full;
};

extern struct streams streams;

/* A clock that never goes back. */
int64_t streams_now_ms(void);

/* Puts a socket into the list and the kernel's; NULL closes the socket. */
struct connection *connection_new(int fd, uint32_t peer);
/* Closes it without another word. */
void connection_close(struct connection *connection);
/* Tells the kernel what is waited for: input always, room where the socket is full. */
void connection_wait(struct connection *connection);

/* It has ended, for this reason: the peer is lost if nothing else is left of it. */
void connection_ended(struct connection *connection, const char *reason);
/* A peer that was up and to which nothing can be sent any more is lost, unless it may still say BYE and there
 * is nothing to send. */
void connection_judge(uint32_t peer, const char *reason);
/* Whether two addresses are of one host. */
int connection_same_host(const struct sockaddr_storage *one, const struct sockaddr_storage *other);
/* HELLO is complete: 0 where it is right, and the connection is its peer's from now on; else -1. */
int connection_greeted(struct connection *connection);

/* Reads what is there, within a bound that leaves the others their share. */
void connection_read(struct connection *connection);
/* Writes what the engine has. */
void connection_write(struct connection *connection);

#endif
