#define _GNU_SOURCE
#include "messages/requests.h"

#include "messages/counts.h"

#include <pthread.h>
#include <stdlib.h>

struct kept {
    MPI_Request request;
    const char *call;
    int to;
    int64_t bytes;
    struct kept *next;
};

enum { CHAINS = 1024 };
static struct kept *chains[CHAINS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct kept **chain_of(MPI_Request request)
{
    uint64_t number = (uint64_t)(intptr_t)request;
    return &chains[number * 0x9e3779b97f4a7c15u >> 54];
}

/* The link to a request's entry; its value is NULL if there is none. */
static struct kept **find(MPI_Request request)
{
    struct kept **at = chain_of(request);
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

void requests_keep(MPI_Request request, const char *call, int to, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    struct kept **at = find(request);
    if (!*at && (*at = calloc(1, sizeof **at)))
        (*at)->request = request;
    if (*at)
        (*at)->call = call, (*at)->to = to, (*at)->bytes = bytes;
    pthread_mutex_unlock(&lock);
}

void requests_started(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    const struct kept *found = *find(request);
    struct kept copy = found ? *found : (struct kept){.call = NULL};
    pthread_mutex_unlock(&lock);
    if (copy.call)
        counts_add(copy.call, copy.to, 0, copy.bytes);
}

void requests_forget(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct kept **at = find(request), *gone = *at;
    if (gone)
        *at = gone->next;
    pthread_mutex_unlock(&lock);
    free(gone);
}
