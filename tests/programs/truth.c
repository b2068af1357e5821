/* What two processes at two sites see of each other, without MPI: both ends know the true addresses by every
 * call, bytes and ends pass both ways, and each of them is called by the other. Linked statically, so that no
 * preload library is in the way.
 *
 *     mpirun -n 2 truth DIRECTORY */
#include "endpoints.h"
#include "pattern.h"
#include <sys/stat.h>

/* This is more than sockets and windows hold, so that both directions have to flow. */
enum { BULK_BYTES = 8 << 20 };

struct names {
    struct sockaddr_in own, peer;
};

static void expect(int right, const char *what)
{
    if (!right)
        fail(what);
}

static int same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
    return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static void move_all(int fd, void *data, size_t size, int out)
{
    for (char *at = data; size > 0;) {
        ssize_t moved = out ? write(fd, at, size) : read(fd, at, size);
        expect(moved > 0, out ? "write" : "read");
        at += moved;
        size -= (size_t)moved;
    }
}

static struct names names_of(int fd)
{
    struct names names;
    socklen_t length = sizeof names.own;
    expect(getsockname(fd, (struct sockaddr *)&names.own, &length) == 0, "getsockname");
    length = sizeof names.peer;
    expect(getpeername(fd, (struct sockaddr *)&names.peer, &length) == 0, "getpeername");
    return names;
}

/* The caller speaks first and ends first; the called one answers with as much of its own. */
static void exchange(int fd, int rank, int calls)
{
    struct names own = names_of(fd), far;
    move_all(fd, &own, sizeof own, 1);
    move_all(fd, &far, sizeof far, 0);
    expect(same(&own.own, &far.peer) && same(&own.peer, &far.own), "both ends know both addresses");
    struct sockaddr_in here = own_address();
    expect(here.sin_addr.s_addr == own.own.sin_addr.s_addr, "the own address is that of the interface");

    unsigned char *data = malloc(BULK_BYTES), more;
    expect(data != NULL, "memory");
    for (int turn = 0; turn < 2; turn++) {
        int speaks = (turn == 0) == calls, from = speaks ? rank : !rank;
        uint64_t seed = pattern_seed((uint64_t)from, 7, BULK_BYTES, (uint64_t)turn);
        if (speaks) {
            pattern_fill(data, BULK_BYTES, seed);
            move_all(fd, data, BULK_BYTES, 1);
            expect(shutdown(fd, SHUT_WR) == 0, "shutdown");
        } else {
            move_all(fd, data, BULK_BYTES, 0);
            expect(!pattern_check(data, BULK_BYTES, seed, "truth", rank, from), "the bytes that were sent");
            expect(read(fd, &more, 1) == 0, "the end after the last byte");
        }
    }
    free(data);

    char peer[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &own.peer.sin_addr, peer, sizeof peer);
    printf("truth: rank %d %s %s: all right\n", rank, calls ? "calls" : "is called by", peer);
    fflush(stdout);
    close(fd);
}

static void be_called(int rank, const char *directory)
{
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    int listener = listen_and_tell(directory), fd = accept(listener, (struct sockaddr *)&peer, &length);
    expect(fd >= 0, "accept");
    struct names names = names_of(fd);
    expect(same(&peer, &names.peer), "accept and getpeername agree");
    exchange(fd, rank, 0);
    close(listener);
}

static void call(int rank, const char *directory)
{
    struct sockaddr_in to = told_address(directory);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect(connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");
    struct names names = names_of(fd);
    expect(same(&to, &names.peer), "getpeername is what was called");
    exchange(fd, rank, 1);
}

int main(int count, char **words)
{
    int rank = launched_rank();
    expect(count == 2 && (rank == 0 || rank == 1), "usage: mpirun -n 2 truth DIRECTORY");
    alarm(DEADLINE_SECONDS);
    for (int caller = 0; caller < 2; caller++) {
        char directory[2048];
        snprintf(directory, sizeof directory, "%s/called-%d", words[1], !caller);
        expect(mkdir(directory, 0777) == 0 || errno == EEXIST, directory);
        if (rank == caller)
            call(rank, directory);
        else
            be_called(rank, directory);
    }
    return 0;
}
