#define _GNU_SOURCE
#include "collectives/transfer/copies.h"

#include "collectives/binding/delivery.h"
#include "collectives/transfer/waiting.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* MPICH itself copies messages up to this size. */
#define INJECTED_BYTES 128

/* Copies are reaped when there are this many more than twice the number that were left the last time. */
#define MIN_REAPED 8

static struct copied {
    struct copied *next;
    MPI_Request request;
    int64_t bytes;
} *copied;
static _Atomic int64_t copied_bytes;
static atomic_int copies, reaped_at = MIN_REAPED;
static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

int copies_are_wanted(int64_t bytes)
{
    return delivery_is_awaited && bytes > INJECTED_BYTES && bytes <= COPIED_BYTES;
}

void copies_reap(int all)
{
    if (!atomic_load_explicit(&copies, memory_order_relaxed))
        return;
    /* More copies may be made meanwhile, because the MPI's calls let other operations run. */
    pthread_mutex_lock(&copying);
    struct copied *list = copied;
    copied = NULL;
    pthread_mutex_unlock(&copying);
    struct copied *left = NULL, **end = &left;
    while (list) {
        struct copied *this = list;
        list = this->next;
        int done = 0;
        if (all) {
            real.Wait(&this->request, MPI_STATUS_IGNORE);
            done = 1;
        } else if (real.Test(&this->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            done = 1;
        }
        if (done) {
            atomic_fetch_sub(&copied_bytes, this->bytes);
            atomic_fetch_sub(&copies, 1);
            free(this);
        } else {
            *end = this;
            end = &this->next;
            *end = NULL;
        }
    }
    reaped_at = MIN_REAPED + 2 * copies;
    if (!left)
        return;
    pthread_mutex_lock(&copying);
    *end = copied;
    copied = left;
    pthread_mutex_unlock(&copying);
}

int copies_send(MPI_Comm comm, const void *from, int64_t count, MPI_Datatype type, int64_t bytes, int to,
                int tag)
{
    if (!waiting_is_beside() && copies >= reaped_at)
        copies_reap(0);
    MPI_Aint lb, extent, true_lb, true_extent;
    if (real.Type_get_extent(type, &lb, &extent) || real.Type_get_true_extent(type, &true_lb, &true_extent) ||
        extent < 0)
        return MPI_ERR_NO_MEM;
    int64_t span = (count - 1) * extent + true_extent;
    /* Elements with gaps are not copied: the memory between them may contain anything, or not exist. */
    if (span != bytes || span > COPIED_BYTES || copied_bytes > MAX_COPIED_BYTES)
        return MPI_ERR_NO_MEM;
    struct copied *this = malloc(sizeof *this + span);
    if (!this)
        return MPI_ERR_NO_MEM;
    char *memory = (char *)(this + 1);
    memcpy(memory, (const char *)from + true_lb, span);
    this->bytes = span;
    int status = real.Isend(memory - true_lb, (int)count, type, to, tag, comm, &this->request);
    if (status != MPI_SUCCESS) {
        free(this);
        return status;
    }
    pthread_mutex_lock(&copying);
    this->next = copied;
    copied = this;
    atomic_fetch_add(&copied_bytes, span);
    atomic_fetch_add(&copies, 1);
    pthread_mutex_unlock(&copying);
    return MPI_SUCCESS;
}
