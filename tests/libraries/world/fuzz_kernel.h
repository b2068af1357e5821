/* The kernel as world/streams and world/rendezvous see it in streams_fuzz.c and messages_fuzz.c, where this
 * is included in front of every file: sockets are socket pairs whose other ends the program holds, with
 * addresses and a clock that it chooses. */
#ifndef CAUSEWAY_FUZZ_KERNEL_H
#define CAUSEWAY_FUZZ_KERNEL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/socket.h>
#include <time.h>

int fuzz_socket(int family, int type, int protocol);
int fuzz_bind(int fd, const struct sockaddr *address, socklen_t n);
int fuzz_connect(int fd, const struct sockaddr *address, socklen_t n);
int fuzz_accept4(int fd, struct sockaddr *address, socklen_t *n, int flags);
int fuzz_getpeername(int fd, struct sockaddr *address, socklen_t *n);
int fuzz_getsockopt(int fd, int level, int name, void *value, socklen_t *n);
int fuzz_clock_gettime(clockid_t clock, struct timespec *now);

#define socket fuzz_socket
#define bind fuzz_bind
#define connect fuzz_connect
#define accept4 fuzz_accept4
#define getpeername fuzz_getpeername
#define getsockopt fuzz_getsockopt
#define clock_gettime fuzz_clock_gettime

#endif
