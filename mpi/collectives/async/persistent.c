#define _GNU_SOURCE
#include "collectives/async/persistent.h"

#include "collectives/async/completion.h"
#include "collectives/async/plan_lifetime.h"
#include "collectives/async/task.h"
#include "collectives/topology/hierarchy_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Each request has its own tags, because ranks may start requests in different orders (MPI 4.0, section
 * 6.13). */
static struct persistent {
    struct persistent *next;
    MPI_Request request;
    struct plan *plan;
    int completion;
} *all;
static atomic_int count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int persistent_make(const struct plan *plan, MPI_Request *request)
{
    struct persistent *one = calloc(1, sizeof *one);
    int status = one ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (one && !(one->plan = plan_copy(plan)))
        status = MPI_ERR_NO_MEM;
    TRY(status, completion_make(&one->completion, request, 1));
    if (status == MPI_SUCCESS) {
        one->request = *request;
        pthread_mutex_lock(&lock);
        one->next = all;
        all = one;
        pthread_mutex_unlock(&lock);
        atomic_fetch_add(&count, 1);
    } else {
        if (one && one->plan)
            plan_release(one->plan);
        free(one);
    }
    return status;
}

/* Finds the entry of a request; returns NULL if it is not one of these. With `out`, removes the entry from
 * the list. */
static struct persistent *find(MPI_Request request, int out)
{
    if (!atomic_load_explicit(&count, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&lock);
    struct persistent **at = &all;
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    struct persistent *one = *at;
    if (one && out) {
        *at = one->next;
        atomic_fetch_sub(&count, 1);
    }
    pthread_mutex_unlock(&lock);
    return one;
}

int persistent_any(void) { return atomic_load(&count); }

int persistent_start(MPI_Request request)
{
    struct persistent *one = find(request, 0);
    /* The caller starts the request after this. A completion message that is sent earlier waits for it. */
    return one ? hierarchy_leave(one->plan->on, task_start(one->plan, one->completion)) : MPI_SUCCESS;
}

static void free_one(struct persistent *one)
{
    int was_inside = hierarchy_inside(1);
    plan_release(one->plan);
    completion_free(one->completion, NULL);
    free(one);
    hierarchy_inside(was_inside);
}

void persistent_free(MPI_Request request)
{
    struct persistent *one = find(request, 1);
    if (one)
        free_one(one);
}

void persistent_end(void)
{
    /* The program frees the requests themselves, possibly in a callback that MPI_Finalize calls. */
    while (all)
        free_one(find(all->request, 1));
}
