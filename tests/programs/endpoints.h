/* Two plain-socket processes, started by any mpirun, find each other through a file in a directory both see:
 * rank 0 listens and writes its address there, rank 1 reads it. Every wait has a deadline; failures end the
 * process. */
#ifndef CAUSEWAY_TEST_ENDPOINTS_H
#define CAUSEWAY_TEST_ENDPOINTS_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* This is generous for a loaded machine of two cores. What takes longer hangs. */
enum { DEADLINE_SECONDS = 60 };

static inline void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "no further reason");
    exit(1);
}

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns -1 when neither an Open MPI nor a hydra launcher started this process. */
static inline int launched_rank(void)
{
    const char *names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (int i = 0; i < 3; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return -1;
}

static inline struct sockaddr_in own_address(void)
{
    struct ifaddrs *all, *one;
    struct sockaddr_in found = {.sin_family = AF_INET};
    if (getifaddrs(&all) != 0)
        fail("list own addresses");
    for (one = all; one; one = one->ifa_next) {
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !(one->ifa_flags & IFF_LOOPBACK)) {
            memcpy(&found, one->ifa_addr, sizeof found);
            break;
        }
    }
    freeifaddrs(all);
    found.sin_port = 0;
    return found;
}

/* Ten thousand sockets need more descriptors than the usual soft limit gives. */
static inline void allow_many_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static inline int listen_and_tell(const char *directory)
{
    struct sockaddr_in address = own_address();
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        fail("listen on own address");

    char scratch[4096], final[4096];
    snprintf(scratch, sizeof scratch, "%s/address.part", directory);
    snprintf(final, sizeof final, "%s/address", directory);
    FILE *file = fopen(scratch, "w");
    if (!file)
        fail(scratch);
    fprintf(file, "%s %d\n", inet_ntoa(address.sin_addr), ntohs(address.sin_port));
    /* The file is renamed when it is complete, so that the reader never sees half an address. */
    if (fclose(file) != 0 || rename(scratch, final) != 0)
        fail(final);
    return fd;
}

static inline void wait_for_file(const char *path)
{
    for (double end = seconds_now() + DEADLINE_SECONDS; access(path, R_OK) != 0; poll(NULL, 0, 10)) {
        if (seconds_now() > end) {
            fprintf(stderr, "waited %d s for %s\n", DEADLINE_SECONDS, path);
            exit(1);
        }
    }
}

static inline struct sockaddr_in told_address(const char *directory)
{
    char path[4096], text[64];
    int port;
    snprintf(path, sizeof path, "%s/address", directory);
    wait_for_file(path);
    FILE *file = fopen(path, "r");
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (!file || fscanf(file, "%63s %d", text, &port) != 2 ||
        inet_pton(AF_INET, text, &address.sin_addr) != 1)
        fail(path);
    fclose(file);
    address.sin_port = htons((unsigned short)port);
    return address;
}

#endif
