/* Lets MPICH over UCX receive messages whose fragments end inside an element. Part of the preload library for
 * jobs of MPICH.
 *
 * UCX delivers a long message in fragments, which end where a segment is full. For a datatype with gaps,
 * MPICH unpacks each fragment separately (before 4.2 in every receive, since then in matched ones), and
 * unpacks only whole elements. If a fragment ends inside an element, the rest of it is lost, and the receive
 * ends with MPI_ERR_TRUNCATE or with wrong data (docs/decisions/0012-unpack.md has versions and sources).
 *
 * So this code assembles the fragments, and unpacks when all have arrived. A message that arrives in one
 * piece is unpacked as before. */
#define _GNU_SOURCE
#include "next.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of ucs/type/status.h, which packs them into a byte. */
#define OK 0
#define NO_MEMORY (-4)
#define TRUNCATED (-9)
#define UNSUPPORTED (-22)
typedef signed char status;

/* As in ucp/api/ucp.h, which need not be installed. The order and meaning of the fields are part of UCX's
 * binary interface. */
struct generic_operations {
    void *(*start_pack)(void *context, const void *buffer, size_t count);
    void *(*start_unpack)(void *context, void *buffer, size_t count);
    size_t (*packed_size)(void *state);
    size_t (*pack)(void *state, size_t offset, void *destination, size_t length);
    status (*unpack)(void *state, size_t offset, const void *source, size_t length);
    void (*finish)(void *state);
};

/* MPICH has one set of operations for all its datatypes. If other code uses UCX, its set is left
 * unchanged. */
static struct generic_operations mpich;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* One message, sent or received. */
struct message {
    void *own; /* MPICH's state */
    int is_received;
    int is_unpacked;
    unsigned char *fragments; /* assembled, once there are several */
    size_t capacity;          /* bytes that the datatype holds */
    size_t arrived;
};

static struct message *begin(void *own, int is_received)
{
    struct message *message = calloc(1, sizeof *message);
    /* The failure cannot be reported to UCX. */
    if (!message)
        abort();
    message->own = own;
    message->is_received = is_received;
    return message;
}

static void *start_pack(void *context, const void *buffer, size_t count)
{
    return begin(mpich.start_pack(context, buffer, count), 0);
}

static void *start_unpack(void *context, void *buffer, size_t count)
{
    struct message *message = begin(mpich.start_unpack(context, buffer, count), 1);
    message->capacity = mpich.packed_size(message->own);
    return message;
}

static size_t packed_size(void *state) { return mpich.packed_size(((struct message *)state)->own); }

static size_t pack(void *state, size_t offset, void *destination, size_t length)
{
    return mpich.pack(((struct message *)state)->own, offset, destination, length);
}

static status unpack_whole(struct message *message, const void *bytes, size_t length)
{
    message->is_unpacked = 1;
    return mpich.unpack(message->own, 0, bytes, length);
}

static status unpack(void *state, size_t offset, const void *source, size_t length)
{
    struct message *message = state;
    if (length > message->capacity || offset > message->capacity - length)
        return TRUNCATED;
    if (length == message->capacity)
        return unpack_whole(message, source, length);
    if (!message->fragments && !(message->fragments = malloc(message->capacity)))
        return NO_MEMORY;
    memcpy(message->fragments + offset, source, length);
    message->arrived += length;
    return message->arrived == message->capacity ? unpack_whole(message, message->fragments, message->arrived)
                                                 : OK;
}

/* UCX calls this after the last fragment, and tells MPICH afterwards that the message has arrived. A message
 * may be shorter than the receive buffer; only here is it known that no fragment follows, but no error can be
 * returned. */
static void finish(void *state)
{
    struct message *message = state;
    if (message->is_received && !message->is_unpacked && message->arrived &&
        unpack_whole(message, message->fragments, message->arrived) != OK)
        fprintf(
            stderr,
            "causeway: MPICH could not unpack a message of %zu bytes: does its datatype fit what was sent?\n",
            message->arrived);
    mpich.finish(message->own);
    free(message->fragments);
    free(message);
}

static int is_mpichs(const struct generic_operations *operations)
{
    pthread_mutex_lock(&guard);
    if (!mpich.unpack)
        mpich = *operations;
    int same = memcmp(&mpich, operations, sizeof mpich) == 0;
    pthread_mutex_unlock(&guard);
    return same;
}

status ucp_dt_create_generic(const struct generic_operations *operations, void *context, uint64_t *datatype)
{
    static const struct generic_operations ours = {start_pack, start_unpack, packed_size,
                                                   pack,       unpack,       finish};
    status (*real)(const struct generic_operations *, void *, uint64_t *) = next("ucp_dt_create_generic");
    if (!real)
        return UNSUPPORTED;
    return real(is_mpichs(operations) ? &ours : operations, context, datatype);
}
