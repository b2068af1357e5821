#define _GNU_SOURCE
#include "messages/counts.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct row {
    const char *call;
    int to, ranks, power;
    int64_t count, bytes, least, most;
};

/* A hash table with open addressing; its size is a power of two, and it is never more than half full. */
static struct row *rows;
static size_t room, used;
/* The number of calls that were not counted because memory was exhausted. */
static int64_t lost;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int power_of(int64_t bytes) { return bytes > 0 ? 64 - __builtin_clzll((unsigned long long)bytes) : 0; }

/* The place where such a row is, or would be. */
static struct row *place_of(const struct row *wanted)
{
    uint64_t hash = (uintptr_t)wanted->call;
    hash = (hash ^ (uint64_t)(unsigned)wanted->to) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ ((uint64_t)(unsigned)wanted->ranks << 8) ^ (uint64_t)wanted->power) * 0x9e3779b97f4a7c15u;
    for (size_t i = hash >> 32;; i++) {
        struct row *at = &rows[i & (room - 1)];
        if (!at->call || (at->call == wanted->call && at->to == wanted->to && at->ranks == wanted->ranks &&
                          at->power == wanted->power))
            return at;
    }
}

static int make_room(void)
{
    if (used * 2 < room)
        return 1;
    struct row *old = rows, *more = calloc(room ? room * 2 : 256, sizeof *rows);
    if (!more)
        return 0;
    size_t old_room = room;
    rows = more;
    room = room ? room * 2 : 256;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].call)
            *place_of(&old[i]) = old[i];
    free(old);
    return 1;
}

void counts_add(const char *call, int to, int ranks, int64_t bytes)
{
    struct row row = {call, to, ranks, power_of(bytes), 0, 0, bytes, bytes};
    pthread_mutex_lock(&lock);
    if (make_room()) {
        struct row *at = place_of(&row);
        if (!at->call)
            *at = row, used++;
        at->count++;
        at->bytes += bytes;
        at->least = bytes < at->least ? bytes : at->least;
        at->most = bytes > at->most ? bytes : at->most;
    } else
        lost++;
    pthread_mutex_unlock(&lock);
}

static void write_all(FILE *file, const struct about *about)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fprintf(file, "causeway-messages,1\nrank,%d,%d\nhost,%s\nseconds,%.6f\nend,%s\nlost,%lld\n", about->rank,
            about->ranks, host, about->seconds, about->end, (long long)lost);
    fprintf(file, "call,to,ranks,count,bytes,least,most\n");
    for (size_t i = 0; i < room; i++) {
        const struct row *row = &rows[i];
        if (row->call)
            fprintf(file, "MPI_%s,%d,%d,%lld,%lld,%lld,%lld\n", row->call, row->to, row->ranks,
                    (long long)row->count, (long long)row->bytes, (long long)row->least,
                    (long long)row->most);
    }
}

/* Does not wait for long: a program that is made to exit may be in the middle of counting, in this same
 * thread. */
static int lock_soon(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    return pthread_mutex_timedlock(&lock, &until);
}

/* Gives the file its final name, unless another file has it. Some file systems have no links, so it is
 * renamed there. */
static int name_file(const char *part, const char *whole)
{
    int failed = link(part, whole) ? errno : 0;
    if (!failed || failed == EEXIST) {
        unlink(part);
        return failed;
    }
    return rename(part, whole) ? errno : 0;
}

int counts_write(const char *directory, const struct about *about)
{
    char part[4096], whole[4096];
    int length = snprintf(part, sizeof part, "%s/rank-%d.%ld.part", directory, about->rank, (long)getpid());
    snprintf(whole, sizeof whole, "%s/rank-%d.csv", directory, about->rank);
    if (length < 0 || (size_t)length >= sizeof part)
        return ENAMETOOLONG;
    FILE *file = fopen(part, "w");
    if (!file)
        return errno;
    int failed = lock_soon();
    if (!failed) {
        write_all(file, about);
        pthread_mutex_unlock(&lock);
        failed = ferror(file) ? EIO : 0;
    }
    if (fclose(file) && !failed)
        failed = errno;
    if (!failed)
        return name_file(part, whole);
    unlink(part);
    return failed;
}
