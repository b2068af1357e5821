#include "world/rendezvous/rendezvous.h"
#include "world/rendezvous/settings.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* The rendezvous is on a head node: a connect that takes longer than this is not going to work. The shim's
 * blocking connect has this limit, too. */
enum { CONNECT_SECONDS = 30, ABORT_SECONDS = 2 };

static struct settings settings;
/* Native rank 0's connection. */
static int rendezvous = -1;
/* The bytes received so far of a frame after WORLD; only ABORT comes then. */
static unsigned char late[MESSAGE_HEAD_BYTES + 1 + 4 + 2 + MESSAGE_MOST_TEXT];
static size_t late_bytes;

int rendezvous_wanted(char *why, size_t room) { return settings_read(&settings, why, room); }

const char *rendezvous_site(void) { return settings.site; }

int rendezvous_descriptor(void) { return rendezvous; }

static socklen_t length_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Limits the time of connecting and of each write; 0 means no limit. */
static void bound(int fd, int seconds)
{
    struct timeval most = {.tv_sec = seconds};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

static int reach(int seconds)
{
    int fd = socket(settings.rendezvous.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* The connection is silent for as long as the program runs. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    bound(fd, seconds);
    int connected;
    do
        connected =
            connect(fd, (const struct sockaddr *)&settings.rendezvous, length_of(&settings.rendezvous));
    while (connected < 0 && errno == EINTR);
    if (connected == 0 || errno == EISCONN)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int send_all(int fd, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        bytes += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* Sends a frame and frees it. */
static int say(int fd, unsigned char *frame, size_t n)
{
    int sent = frame ? send_all(fd, frame, n) : -1;
    free(frame);
    return sent;
}

/* Reads exactly n bytes. Returns 1, 0 at the end of the stream, or -1. */
static int receive_all(int fd, unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t received = recv(fd, bytes, n, 0);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            return (int)received;
        bytes += received;
        n -= (size_t)received;
    }
    return 1;
}

/* Waits for a frame, and returns it without its length field; NULL with a sentence in `why` on failure. */
static unsigned char *receive(int fd, size_t *n, char *why, size_t room)
{
    unsigned char head[MESSAGE_HEAD_BYTES], *frame = NULL;
    errno = 0;
    int received = receive_all(fd, head, sizeof head);
    if (received > 0 && (*n = message_length(head)) == 0) {
        snprintf(why, room, "the rendezvous sends what is no frame");
        return NULL;
    }
    if (received > 0 && (frame = malloc(*n)) != NULL && (received = receive_all(fd, frame, *n)) > 0)
        return frame;
    snprintf(why, room, "wait for the other sites: %s",
             received == 0 ? "'causeway run' has ended" : strerror(errno ? errno : ENOMEM));
    free(frame);
    return NULL;
}

int rendezvous_world(const struct rendezvous_request *request, unsigned char **world, size_t *n, char *why,
                     size_t room)
{
    size_t bytes = 0;
    int fd = reach(CONNECT_SECONDS);
    if (fd < 0) {
        snprintf(why, room, "connect to the rendezvous of 'causeway run': %s", strerror(errno));
        return -1;
    }
    unsigned char *frame = message_join(request, settings.site, settings.token, &bytes);
    if (!frame) {
        snprintf(why, room,
                 "%u processes at %s cannot be told: too many, or an address that is no IP address",
                 request->processes, settings.site);
        close(fd);
        return -1;
    }
    if (say(fd, frame, bytes) != 0) {
        snprintf(why, room, "tell the rendezvous of 'causeway run' who is here: %s", strerror(errno));
        close(fd);
        return -1;
    }
    frame = receive(fd, n, why, room);
    uint32_t code;
    if (frame && frame[0] == MESSAGE_WORLD) {
        bound(fd, ABORT_SECONDS);
        rendezvous = fd;
        late_bytes = 0;
        *world = frame;
        return 0;
    }
    if (frame && message_read_no(frame, *n, why, room) != 0 &&
        message_read_abort(frame, *n, &code, why, room) != 0)
        snprintf(why, room, "the rendezvous answers what this library does not know");
    free(frame);
    close(fd);
    return -1;
}

int rendezvous_heard(uint32_t *code, char *text, size_t room)
{
    if (rendezvous < 0)
        return 0;
    ssize_t received = recv(rendezvous, late + late_bytes, sizeof late - late_bytes, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (received > 0) {
        late_bytes += (size_t)received;
        size_t n = late_bytes < MESSAGE_HEAD_BYTES ? 1 : message_length(late);
        if (n > 0 && late_bytes < MESSAGE_HEAD_BYTES + n && late_bytes < sizeof late)
            return 0;
        if (n > 0 && late_bytes >= MESSAGE_HEAD_BYTES + n &&
            message_read_abort(late + MESSAGE_HEAD_BYTES, n, code, text, room) == 0)
            return 1;
    }
    close(rendezvous);
    rendezvous = -1;
    return -1;
}

void rendezvous_abort(uint32_t code, const char *text)
{
    size_t n = 0;
    int fd = rendezvous >= 0 ? rendezvous : reach(ABORT_SECONDS);
    if (fd < 0)
        return;
    /* Not as an argument of say(): C evaluates arguments in any order, and n is known only once the frame is
     * made. */
    unsigned char *who = fd == rendezvous ? NULL : message_process(settings.site, settings.token, &n);
    if (fd == rendezvous || say(fd, who, n) == 0) {
        unsigned char *frame = message_abort(code, text, &n);
        say(fd, frame, n);
    }
    if (fd != rendezvous)
        close(fd);
}

void rendezvous_done(void)
{
    size_t n = 0;
    if (rendezvous < 0)
        return;
    unsigned char *frame = message_done(&n);
    say(rendezvous, frame, n);
    close(rendezvous);
    rendezvous = -1;
}
