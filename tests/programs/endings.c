/* How TCP connections begin and end between two sites, without MPI: half-close, close with data in flight,
 * reset, refusal, and that both ends agree on their addresses. Rank 0 serves, rank 1 asks for one case after
 * the other.
 *
 *     mpirun -n 2 endings DIRECTORY */
#include "endpoints.h"
#include "pattern.h"
#include <fcntl.h>

/* A few bytes are on the network before a reset can throw them away: they fit the first congestion window of
 * any path. */
enum { BULK_BYTES = 8 << 20, FEW_BYTES = 4 << 10 };

enum {
    HALF_CLOSE_CLIENT,
    HALF_CLOSE_SERVER,
    CLOSE_IN_FLIGHT,
    RESET_CLIENT,
    RESET_SERVER,
    BYTES_THEN_RESET_CLIENT,
    BYTES_THEN_RESET_SERVER,
    ADDRESSES,
    CASES
};

static const char *case_name[CASES] = {"half-close by the client",
                                       "half-close by the server",
                                       "close with data in flight",
                                       "reset by the client",
                                       "reset by the server",
                                       "bytes, then reset by the client",
                                       "bytes, then reset by the server",
                                       "addresses agree"};

static void expect(int right, const char *what)
{
    if (!right)
        fail(what);
}

static void write_all(int fd, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        ssize_t put = write(fd, at, size);
        expect(put > 0, "write");
        at += put;
        size -= (size_t)put;
    }
}

static void read_all(int fd, void *data, size_t size)
{
    for (char *at = data; size > 0;) {
        ssize_t got = read(fd, at, size);
        expect(got > 0, "read");
        at += got;
        size -= (size_t)got;
    }
}

static unsigned char *bulk(int from)
{
    unsigned char *data = malloc(BULK_BYTES);
    expect(data != NULL, "memory");
    pattern_fill(data, BULK_BYTES, pattern_seed((uint64_t)from, 9, BULK_BYTES, 0));
    return data;
}

static void send_bulk(int fd, int from)
{
    unsigned char *data = bulk(from);
    write_all(fd, data, BULK_BYTES);
    free(data);
}

/* Reads everything the far side sent, and then its end: no byte more, none less. */
static void read_bulk_to_end(int fd, int from)
{
    unsigned char *data = malloc(BULK_BYTES), more;
    expect(data != NULL, "memory");
    read_all(fd, data, BULK_BYTES);
    expect(!pattern_check(data, BULK_BYTES, pattern_seed((uint64_t)from, 9, BULK_BYTES, 0), "endings", !from,
                          from),
           "contents");
    errno = 0;
    expect(read(fd, &more, 1) == 0, "end of stream after the last byte");
    free(data);
}

/* Closes so that the far side gets a reset and no end of stream. */
static void reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    expect(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0, "SO_LINGER");
    close(fd);
}

static void expect_reset(int fd)
{
    char byte;
    errno = 0;
    ssize_t got = read(fd, &byte, 1);
    expect(got < 0 && errno == ECONNRESET, "ECONNRESET after the far side reset the connection");
    close(fd);
}

static void send_few_and_reset(int fd, int from)
{
    unsigned char data[FEW_BYTES];
    pattern_fill(data, FEW_BYTES, pattern_seed((uint64_t)from, 9, FEW_BYTES, 0));
    write_all(fd, data, FEW_BYTES);
    reset(fd);
}

/* Reads late, when the reset is there too. A kernel hands out the bytes before the error. */
static void read_few_then_reset(int fd, int from)
{
    unsigned char data[FEW_BYTES];
    poll(NULL, 0, 200);
    read_all(fd, data, FEW_BYTES);
    expect(!pattern_check(data, FEW_BYTES, pattern_seed((uint64_t)from, 9, FEW_BYTES, 0), "endings", !from,
                          from),
           "contents");
    expect_reset(fd);
}

/* Who names himself and who looks at him must come to the same address and port. */
static void tell_own_name(int fd)
{
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    expect(getsockname(fd, (struct sockaddr *)&name, &length) == 0, "getsockname");
    write_all(fd, &name.sin_addr, 4);
    write_all(fd, &name.sin_port, 2);
}

static void compare_peer_name(int fd, const struct sockaddr_in *accepted)
{
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    uint32_t address;
    uint16_t port;
    read_all(fd, &address, 4);
    read_all(fd, &port, 2);
    expect(getpeername(fd, (struct sockaddr *)&peer, &length) == 0, "getpeername");
    errno = 0;
    expect(peer.sin_addr.s_addr == address, "getpeername() gives the address the peer has");
    expect(peer.sin_port == port, "getpeername() gives the port the peer has");
    if (accepted)
        expect(accepted->sin_addr.s_addr == address && accepted->sin_port == port,
               "accept() agrees with getpeername()");
}

static void serve_case(int which, int fd, const struct sockaddr_in *accepted)
{
    char byte = 1;
    switch (which) {
    case HALF_CLOSE_CLIENT:
        read_bulk_to_end(fd, 1);
        send_bulk(fd, 0);
        close(fd);
        break;
    case HALF_CLOSE_SERVER:
        send_bulk(fd, 0);
        expect(shutdown(fd, SHUT_WR) == 0, "shutdown");
        read_bulk_to_end(fd, 1);
        close(fd);
        break;
    case CLOSE_IN_FLIGHT:
        /* The read is late, so that all of it waits on the way when the client closes. */
        poll(NULL, 0, 200);
        read_bulk_to_end(fd, 1);
        close(fd);
        break;
    case RESET_CLIENT:
        write_all(fd, &byte, 1);
        expect_reset(fd);
        break;
    case RESET_SERVER:
        read_all(fd, &byte, 1);
        reset(fd);
        break;
    case BYTES_THEN_RESET_CLIENT:
        read_few_then_reset(fd, 1);
        break;
    case BYTES_THEN_RESET_SERVER:
        send_few_and_reset(fd, 0);
        break;
    case ADDRESSES:
        compare_peer_name(fd, accepted);
        tell_own_name(fd);
        close(fd);
        break;
    }
}

static void serve(const char *directory)
{
    int listener = listen_and_tell(directory);
    for (int which = 0; which < CASES; which++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        int fd = accept(listener, (struct sockaddr *)&peer, &length);
        expect(fd >= 0, "accept");
        serve_case(which, fd, &peer);
    }
}

static int connected(const struct sockaddr_in *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect(connect(fd, (const struct sockaddr *)to, sizeof *to) == 0, "connect");
    return fd;
}

static void use_case(int which, const struct sockaddr_in *to)
{
    char byte = 1;
    int fd = connected(to);
    switch (which) {
    case HALF_CLOSE_CLIENT:
        send_bulk(fd, 1);
        expect(shutdown(fd, SHUT_WR) == 0, "shutdown");
        read_bulk_to_end(fd, 0);
        close(fd);
        break;
    case HALF_CLOSE_SERVER:
        read_bulk_to_end(fd, 0);
        send_bulk(fd, 1);
        close(fd);
        break;
    case CLOSE_IN_FLIGHT:
        send_bulk(fd, 1);
        close(fd);
        break;
    case RESET_CLIENT:
        read_all(fd, &byte, 1);
        reset(fd);
        break;
    case RESET_SERVER:
        write_all(fd, &byte, 1);
        expect_reset(fd);
        break;
    case BYTES_THEN_RESET_CLIENT:
        send_few_and_reset(fd, 1);
        break;
    case BYTES_THEN_RESET_SERVER:
        read_few_then_reset(fd, 0);
        break;
    case ADDRESSES:
        tell_own_name(fd);
        compare_peer_name(fd, NULL);
        close(fd);
        break;
    }
    printf("endings: %s: all right\n", case_name[which]);
    fflush(stdout);
}

/* Nobody listens at port 1025 of the server's node, and no gateway has a policy against it. */
static void expect_refusal(struct sockaddr_in to)
{
    to.sin_port = htons(1025);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect(connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno == ECONNREFUSED,
           "ECONNREFUSED from a blocking connect to a closed port");
    close(fd);

    /* A non-blocking connect may succeed first; the refusal then comes as an error of the first read. */
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    char byte;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        expect(poll(&readable, 1, DEADLINE_SECONDS * 1000) == 1, "an error from a non-blocking connect");
        ssize_t got = read(fd, &byte, 1);
        expect(got < 0 && (errno == ECONNREFUSED || errno == ECONNRESET),
               "refusal of a non-blocking connect");
    } else {
        expect(errno == ECONNREFUSED, "ECONNREFUSED from a non-blocking connect to a closed port");
    }
    close(fd);
    printf("endings: refusal: all right\n");
}

int main(int argc, char **argv)
{
    int rank = launched_rank();
    if (argc < 2 || rank < 0) {
        fprintf(stderr, "usage: mpirun -n 2 endings DIRECTORY\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    alarm(DEADLINE_SECONDS);
    if (rank == 0)
        serve(argv[1]);
    if (rank == 1) {
        struct sockaddr_in to = told_address(argv[1]);
        expect_refusal(to);
        for (int which = 0; which < CASES; which++)
            use_case(which, &to);
    }
    return 0;
}
