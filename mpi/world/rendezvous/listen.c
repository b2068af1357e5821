/* This process's listener, and the address by which other sites know it. */
#define _GNU_SOURCE
#include "world/rendezvous/rendezvous.h"
#include "world/rendezvous/settings.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static socklen_t length_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The shim knows which of the host's addresses the grid uses. */
static int told_by_shim(struct sockaddr_storage *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    void (*own_address)(char *, size_t);
    *(void **)&own_address = dlsym(RTLD_DEFAULT, "causeway_own_address");
    if (!own_address)
        return -1;
    own_address(text, sizeof text);
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        memcpy(address, &v4, sizeof v4);
    else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
        memcpy(address, &v6, sizeof v6);
    else
        return -1;
    return 0;
}

/* Without the shim, takes the address from which the rendezvous is reached. connect() on a datagram socket
 * sends nothing. */
static int towards_rendezvous(struct sockaddr_storage *address)
{
    struct settings settings;
    char why[8];
    if (settings_read(&settings, why, sizeof why) != 1)
        return -1;
    int fd = socket(settings.rendezvous.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    socklen_t n = sizeof *address;
    int known =
        connect(fd, (const struct sockaddr *)&settings.rendezvous, length_of(&settings.rendezvous)) == 0 &&
        getsockname(fd, (struct sockaddr *)address, &n) == 0;
    close(fd);
    return known ? 0 : -1;
}

static in_port_t *port_of(struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)address)->sin6_port
                                          : &((struct sockaddr_in *)address)->sin_port;
}

int rendezvous_listen(struct sockaddr_storage *address, char *why, size_t room)
{
    memset(address, 0, sizeof *address);
    if (told_by_shim(address) != 0 && towards_rendezvous(address) != 0) {
        snprintf(
            why, room,
            "this host has no address in site %s: name its subnet in the configuration of the gateway there",
            rendezvous_site());
        return -1;
    }
    *port_of(address) = 0;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Only the port is taken from `bound`: other sites may not know the address by which the kernel knows the
     * host. */
    struct sockaddr_storage bound = {0};
    socklen_t n = sizeof bound;
    if (fd >= 0 && bind(fd, (struct sockaddr *)address, length_of(address)) == 0 &&
        listen(fd, SOMAXCONN) == 0 && getsockname(fd, (struct sockaddr *)&bound, &n) == 0) {
        *port_of(address) = *port_of(&bound);
        return fd;
    }
    snprintf(why, room, "listen for other sites: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}
