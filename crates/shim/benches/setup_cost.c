/* What connection set-up costs on the native path, in ns per call, median of 21 rounds: run it with and
 * without the library preloaded, in turn, and compare. Prints one line per call. Needs a Linux loopback and
 * nothing else.
 *
 *   cc -O2 -o /tmp/setup_cost crates/shim/benches/setup_cost.c
 *   /tmp/setup_cost; LD_PRELOAD=target/release/libcauseway_shim.so CAUSEWAY_GRID=... CAUSEWAY_TOKEN=...
 *   /tmp/setup_cost
 *
 * argv[1] is the address to listen at and connect to: 127.0.0.1, or the node's own in its site. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 21, CALLS = 2000 };

static double ns[5][ROUNDS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET}, peer;
    socklen_t length = sizeof at;
    struct linger reset = {1, 0};
    if (inet_pton(AF_INET, argc > 1 ? argv[1] : "127.0.0.1", &at.sin_addr) != 1)
        die("address");
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 100))
        die("listen");
    getsockname(listener, (struct sockaddr *)&at, &length);
    for (int round = 0; round < ROUNDS; round++) {
        double connecting = 0, accepting = 0, start;
        for (int i = 0; i < CALLS; i++) {
            int client = socket(AF_INET, SOCK_STREAM, 0);
            /* No TIME_WAIT, which would fill the ports up. */
            setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            start = now();
            if (connect(client, (struct sockaddr *)&at, sizeof at))
                die("connect");
            connecting += now() - start;
            length = sizeof peer;
            start = now();
            int server = accept(listener, (struct sockaddr *)&peer, &length);
            accepting += now() - start;
            if (server < 0)
                die("accept");
            if (i + 1 < CALLS) {
                close(client);
                close(server);
                continue;
            }
            ns[0][round] = connecting / CALLS;
            ns[1][round] = accepting / CALLS;
            start = now();
            for (int j = 0; j < CALLS; j++)
                length = sizeof peer, getpeername(client, (struct sockaddr *)&peer, &length);
            ns[2][round] = (now() - start) / CALLS;
            start = now();
            for (int j = 0; j < CALLS; j++)
                fcntl(client, F_GETFL);
            ns[3][round] = (now() - start) / CALLS;
            start = now();
            for (int j = 0; j < CALLS; j++)
                dup2(client, 100);
            ns[4][round] = (now() - start) / CALLS;
            close(client);
            close(server);
        }
    }
    const char *names[] = {"connect", "accept", "getpeername", "fcntl", "dup2"};
    for (int call = 0; call < 5; call++) {
        qsort(ns[call], ROUNDS, sizeof(double), by_value);
        printf("%-12s %8.0f ns\n", names[call], ns[call][ROUNDS / 2]);
    }
}
