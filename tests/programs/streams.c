/* Many TCP connections at once between two sites, without MPI: rank 0 echoes, rank 1 opens all of them, sends
 * a message of its own on each, checks what comes back and keeps every one open until all are answered.
 *
 *     mpirun -n 2 streams DIRECTORY COUNT [--hold]
 *
 * With --hold, rank 1 writes DIRECTORY/open when all are open and answered and waits for DIRECTORY/release,
 * so that the gateway's memory can be read in between. */
#include "endpoints.h"
#include "pattern.h"
#include <fcntl.h>
#include <sys/epoll.h>

enum { MESSAGE_BYTES = 512, IN_FLIGHT = 512, EVENTS = 256 };

/* One connection of rank 1. */
struct stream {
    int fd;
    size_t received;
    unsigned char answer[MESSAGE_BYTES];
};

static void watch(int epoll, int fd, uint32_t events, uint64_t data, int operation)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    if (epoll_ctl(epoll, operation, fd, &event) != 0)
        fail("epoll_ctl");
}

/* Echoes until rank 1 has closed `count` connections. A message fits into any socket buffer, so a short write
 * here is an error and not a case to handle. */
static void serve(const char *directory, int count)
{
    int listener = listen_and_tell(directory), epoll = epoll_create1(EPOLL_CLOEXEC), closed = 0;
    unsigned char data[MESSAGE_BYTES];
    watch(epoll, listener, EPOLLIN, (uint64_t)listener, EPOLL_CTL_ADD);
    while (closed < count) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, DEADLINE_SECONDS * 2000);
        if (ready <= 0)
            fail("no stream was opened, used or closed before the deadline");
        for (int i = 0; i < ready; i++) {
            int fd = (int)events[i].data.u64;
            if (fd == listener) {
                int peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (peer < 0)
                    fail("accept");
                watch(epoll, peer, EPOLLIN, (uint64_t)peer, EPOLL_CTL_ADD);
                continue;
            }
            ssize_t got = read(fd, data, sizeof data);
            if (got > 0 && write(fd, data, (size_t)got) != got)
                fail("echo");
            if (got < 0 && errno != EAGAIN)
                fail("read a message");
            if (got == 0) {
                close(fd);
                closed++;
            }
        }
    }
}

static void open_one(int epoll, struct stream *stream, uint64_t index, const struct sockaddr_in *to)
{
    stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream->fd < 0)
        fail("socket");
    if (connect(stream->fd, (const struct sockaddr *)to, sizeof *to) != 0 && errno != EINPROGRESS)
        fail("connect");
    watch(epoll, stream->fd, EPOLLOUT, index, EPOLL_CTL_ADD);
}

static void send_message(int epoll, struct stream *stream, uint64_t index)
{
    unsigned char message[MESSAGE_BYTES];
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error) {
        errno = error;
        fail("connect, as SO_ERROR says");
    }
    pattern_fill(message, sizeof message, pattern_seed(1, 0, index, 0));
    if (write(stream->fd, message, sizeof message) != (ssize_t)sizeof message)
        fail("send the first message");
    watch(epoll, stream->fd, EPOLLIN, index, EPOLL_CTL_MOD);
}

/* Returns 1 when the whole answer has come and is right. */
static int receive_answer(struct stream *stream, uint64_t index)
{
    ssize_t got = read(stream->fd, stream->answer + stream->received, MESSAGE_BYTES - stream->received);
    if (got == 0) {
        errno = 0;
        fail("a stream ended before its answer");
    }
    if (got < 0) {
        if (errno == EAGAIN)
            return 0;
        fail("read an answer");
    }
    stream->received += (size_t)got;
    if (stream->received < MESSAGE_BYTES)
        return 0;
    if (pattern_check(stream->answer, MESSAGE_BYTES, pattern_seed(1, 0, index, 0), "streams", 1, 0))
        exit(1);
    return 1;
}

static void use(const char *directory, int count, int hold)
{
    struct sockaddr_in to = told_address(directory);
    struct stream *streams = calloc((size_t)count, sizeof *streams);
    int epoll = epoll_create1(EPOLL_CLOEXEC), opened = 0, answered = 0;
    double start = seconds_now();
    if (!streams || epoll < 0)
        fail("prepare");
    while (answered < count) {
        struct epoll_event events[EVENTS];
        for (; opened < count && opened - answered < IN_FLIGHT; opened++)
            open_one(epoll, &streams[opened], (uint64_t)opened, &to);
        int ready = epoll_wait(epoll, events, EVENTS, DEADLINE_SECONDS * 1000);
        if (ready <= 0) {
            fprintf(stderr, "streams: %d of %d answered, then nothing for %d s\n", answered, count,
                    DEADLINE_SECONDS);
            exit(1);
        }
        for (int i = 0; i < ready; i++) {
            uint64_t index = events[i].data.u64;
            if (events[i].events & EPOLLOUT)
                send_message(epoll, &streams[index], index);
            else if (receive_answer(&streams[index], index)) {
                watch(epoll, streams[index].fd, 0, index, EPOLL_CTL_MOD);
                answered++;
            }
        }
    }
    double seconds = seconds_now() - start;
    if (hold) {
        char path[4096];
        snprintf(path, sizeof path, "%s/open", directory);
        FILE *file = fopen(path, "w");
        if (!file || fclose(file) != 0)
            fail(path);
        snprintf(path, sizeof path, "%s/release", directory);
        wait_for_file(path);
    }
    for (int i = 0; i < count; i++)
        close(streams[i].fd);
    printf("streams: %d open at once, all answered after %.3f s, all right\n", count, seconds);
    free(streams);
}

int main(int argc, char **argv)
{
    int rank = launched_rank();
    if (argc < 3 || rank < 0 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: mpirun -n 2 streams DIRECTORY COUNT [--hold]\n");
        return 2;
    }
    allow_many_descriptors();
    if (rank == 0)
        serve(argv[1], atoi(argv[2]));
    else if (rank == 1)
        use(argv[1], atoi(argv[2]), argc > 3 && !strcmp(argv[3], "--hold"));
    return 0;
}
