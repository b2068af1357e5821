#define _GNU_SOURCE
#include "transfer/transfer.h"

#include "async/task.h"
#include "binding/delivery.h"
#include "select/choice.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Of so many sites it is counted what each is sent. */
#define COUNTED_SITES 16

static _Atomic int64_t crossed_messages, crossed_bytes, messages_to[COUNTED_SITES], bytes_to[COUNTED_SITES];

static void count_crossing(int site, int64_t bytes)
{
    atomic_fetch_add_explicit(&crossed_messages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&crossed_bytes, bytes, memory_order_relaxed);
    if (site < COUNTED_SITES) {
        atomic_fetch_add_explicit(&messages_to[site], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&bytes_to[site], bytes, memory_order_relaxed);
    }
}

/* Since MPI 4, whose own call of old refuses what was made with large counts. */
typedef int large_envelope(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);

int type_is_named(MPI_Datatype type)
{
    static large_envelope *large;
    static int was_sought;
    int combiner, integers, addresses, types;
    MPI_Count many[4];
    if (!was_sought) {
        large = (large_envelope *)mpi_calls_find("Type_get_envelope_c");
        was_sought = 1;
    }
    if (type == handle.datatype_null || (large ? large(type, &many[0], &many[1], &many[2], &many[3], &combiner)
                                               : real.Type_get_envelope(type, &integers, &addresses, &types, &combiner)))
        return 1;
    return combiner == MPI_COMBINER_NAMED;
}

int shape_of(MPI_Datatype type, struct shape *shape)
{
    MPI_Aint lb;
    shape->type = type;
    if (type == handle.datatype_null || real.Type_size_x(type, &shape->size) || real.Type_get_extent(type, &lb, &shape->extent) ||
        real.Type_get_true_extent(type, &shape->true_lb, &shape->true_extent))
        return 0;
    shape->is_plain = shape->size == shape->extent && lb == 0 && shape->true_lb == 0 && type_is_named(type);
    return 1;
}

int64_t shape_bytes(const struct shape *shape, int64_t count)
{
    return shape->size > 0 && count > INT64_MAX / shape->size ? INT64_MAX : count * shape->size;
}

int pack(const void *buffer, int64_t count, const struct shape *shape, char *to, int64_t length, MPI_Comm comm)
{
    if (length == 0)
        return MPI_SUCCESS;
    if (shape->is_plain) {
        memcpy(to, buffer, length);
        return MPI_SUCCESS;
    }
    int position = 0;
    return real.Pack(buffer, (int)count, shape->type, to, (int)length, &position, comm);
}

int unpack(const char *from, int64_t length, void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm)
{
    if (length == 0)
        return MPI_SUCCESS;
    if (shape->is_plain) {
        memcpy(buffer, from, length);
        return MPI_SUCCESS;
    }
    int position = 0;
    return real.Unpack(from, (int)length, &position, buffer, (int)count, shape->type, comm);
}

int bytes_room(void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes)
{
    bytes->length = count * shape->size;
    bytes->owned = NULL;
    bytes->at = buffer;
    if (shape->is_plain || bytes->length == 0)
        return MPI_SUCCESS;
    bytes->at = bytes->owned = malloc(bytes->length);
    return bytes->owned ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int bytes_pack(const void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm, struct bytes *bytes)
{
    int status = bytes_room((void *)buffer, count, shape, bytes);
    if (status == MPI_SUCCESS && bytes->owned)
        status = pack(buffer, count, shape, bytes->owned, bytes->length, comm);
    return status;
}

int bytes_unpack(const struct bytes *bytes, void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm)
{
    return bytes->owned ? unpack(bytes->owned, bytes->length, buffer, count, shape, comm) : MPI_SUCCESS;
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->owned);
    bytes->owned = NULL;
}

void *elements(int64_t count, const struct shape *shape, void **origin)
{
    /* The extent may be negative: the last element then lies lowest. */
    int64_t span = count > 0 ? (count - 1) * (int64_t)llabs(shape->extent) : 0;
    char *memory = malloc(shape->true_extent + span + 1);
    if (memory)
        *origin = memory - shape->true_lb + (shape->extent < 0 ? span : 0);
    return memory;
}

/* Where a message counts as sent a round trip later (delivery.h), up to so many bytes are sent from a copy, which nobody waits for: the kernel
 * has taken them, or will, in this process's next call. */
#define COPIED_BYTES (256 * 1024)
/* MPICH copies these by itself. */
#define INJECTED_BYTES 128
#define MAX_COPIED_BYTES (32 << 20)

/* Intel MPI holds a message back that is larger, until its receiver has answered; Open MPI holds back none that causeway run's eager limit lets go. */
#if defined(OPEN_MPI)
#define CUT_BYTES 0
#else
#define CUT_BYTES COPIED_BYTES
#endif

/* Copies are looked after when there are so many, or twice as many as were left the last time. */
#define MIN_REAPED 8

static struct copied {
    struct copied *next;
    MPI_Request request;
    int64_t bytes;
} *copied;
static _Atomic int64_t copied_bytes;
static atomic_int copies, reaped_at = MIN_REAPED;
static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

void transfer_reap(int all)
{
    if (!atomic_load_explicit(&copies, memory_order_relaxed))
        return;
    /* Others may be made meanwhile: the MPI's calls let other operations go on. */
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

/* Sends from a copy; MPI_ERR_NO_MEM when there is none to be had, or are too many, and the message is to be sent as it is. */
static int send_copy(const struct hierarchy *on, const void *from, int64_t count, MPI_Datatype type, int64_t bytes, int to, int tag)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    if (real.Type_get_extent(type, &lb, &extent) || real.Type_get_true_extent(type, &true_lb, &true_extent) || extent < 0)
        return MPI_ERR_NO_MEM;
    int64_t span = (count - 1) * extent + true_extent;
    /* Between the elements there may be anything, or nothing. */
    if (span != bytes || span > COPIED_BYTES || copied_bytes > MAX_COPIED_BYTES)
        return MPI_ERR_NO_MEM;
    struct copied *this = malloc(sizeof *this + span);
    if (!this)
        return MPI_ERR_NO_MEM;
    char *memory = (char *)(this + 1);
    memcpy(memory, (const char *)from + true_lb, span);
    this->bytes = span;
    int status = real.Isend(memory - true_lb, (int)count, type, to, on->tags + tag, on->across, &this->request);
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

static struct request *one_more(struct requests *some)
{
    if (some->count == some->room) {
        int room = some->room ? 2 * some->room : 16;
        struct request *all = realloc(some->all, room * sizeof *all);
        if (!all)
            return NULL;
        some->all = all;
        some->room = room;
    }
    return &some->all[some->count];
}

/* Counts above INT_MAX come by calls of MPI 4 alone, whose MPI has these as well. */
typedef int large_send(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int large_receive(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static int isend(const void *from, int64_t count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (count <= INT_MAX)
        return real.Isend(from, (int)count, type, to, tag, comm, request);
    large_send *send = (large_send *)mpi_calls_find("Isend_c");
    return send ? send(from, count, type, to, tag, comm, request) : MPI_ERR_COUNT;
}

static int irecv(void *into, int64_t count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (count <= INT_MAX)
        return real.Irecv(into, (int)count, type, from, tag, comm, request);
    large_receive *receive = (large_receive *)mpi_calls_find("Irecv_c");
    return receive ? receive(into, count, type, from, tag, comm, request) : MPI_ERR_COUNT;
}

int requests_send(struct requests *some, const struct hierarchy *on, const void *from, int64_t count, MPI_Datatype type,
                  int to, int tag)
{
    struct request *request = one_more(some);
    if (!request)
        return MPI_ERR_NO_MEM;
    MPI_Count size = 1;
    real.Type_size_x(type, &size);
    int64_t bytes = count * size;
    if (on->site_of[to] != on->site)
        count_crossing(on->site_of[to], bytes);
    request->receives = 0;
    if (delivery_is_awaited && on->site_of[to] != on->site && bytes > INJECTED_BYTES && bytes <= COPIED_BYTES) {
        if (!task_runs() && copies >= reaped_at)
            transfer_reap(0);
        request->handle = handle.request_null;
        int copy = send_copy(on, from, count, type, bytes, to, tag);
        if (copy != MPI_ERR_NO_MEM) {
            some->count += copy == MPI_SUCCESS;
            return copy;
        }
    }
    int status = isend(from, count, type, to, on->tags + tag, on->across, &request->handle);
    some->count += status == MPI_SUCCESS;
    return status;
}

int requests_receive(struct requests *some, const struct hierarchy *on, void *into, int64_t count, MPI_Datatype type,
                     int from, int tag)
{
    struct request *request = one_more(some);
    if (!request)
        return MPI_ERR_NO_MEM;
    int status = irecv(into, count, type, from, on->tags + tag, on->across, &request->handle);
    request->receives = 1;
    some->count += status == MPI_SUCCESS;
    return status;
}

/* Both ends know the bytes of a message, and decide alike. More than is copied at once waits anyway. */
static struct segments pieces_of(const struct hierarchy *on, int64_t count, const struct shape *shape, int other)
{
    int64_t bytes = shape_bytes(shape, count), segment = choice_segment(), piece = segment < CUT_BYTES ? segment : CUT_BYTES;
    int is_cut = on->site_of[other] != on->site && piece > 0 && bytes > piece && bytes <= MAX_COPIED_BYTES;
    return is_cut ? segments_of(bytes, 1, piece) : (struct segments){bytes, 1};
}

int requests_send_cut(struct requests *some, const struct hierarchy *on, const void *from, int64_t count, const struct shape *shape, int to, int tag,
                      struct bytes *bytes)
{
    struct segments segments = pieces_of(on, count, shape, to);
    *bytes = (struct bytes){0};
    if (segments.pieces == 1)
        return requests_send(some, on, from, count, shape->type, to, tag);
    int status = bytes_pack(from, count, shape, on->across, bytes);
    for (int i = 0; i < segments.pieces; i++)
        TRY(status, requests_send(some, on, bytes->at + segment_at(&segments, i), segment_count(&segments, i), handle.byte, to, tag));
    return status;
}

int requests_receive_cut(struct requests *some, const struct hierarchy *on, void *into, int64_t count, const struct shape *shape, int from, int tag,
                         struct bytes *bytes)
{
    struct segments segments = pieces_of(on, count, shape, from);
    *bytes = (struct bytes){0};
    if (segments.pieces == 1)
        return requests_receive(some, on, into, count, shape->type, from, tag);
    int status = bytes_room(into, count, shape, bytes);
    for (int i = 0; i < segments.pieces; i++)
        TRY(status, requests_receive(some, on, bytes->at + segment_at(&segments, i), segment_count(&segments, i), handle.byte, from, tag));
    return status;
}

int requests_wait(struct requests *some)
{
    int status = MPI_SUCCESS;
    /* One after the other: an error is then the request's own, and none is left behind. */
    for (int i = 0; i < some->count; i++) {
        int this = requests_wait_for(some, i);
        if (status == MPI_SUCCESS)
            status = this;
    }
    some->count = 0;
    return status;
}

int requests_wait_for(struct requests *some, int which)
{
    MPI_Request *request = &some->all[which].handle;
    return *request == handle.request_null ? MPI_SUCCESS : task_wait(request);
}

void requests_free(struct requests *some, int status)
{
    for (int i = 0; status != MPI_SUCCESS && i < some->count; i++) {
        MPI_Request *request = &some->all[i].handle;
        if (*request == handle.request_null)
            continue;
        if (some->all[i].receives)
            real.Cancel(request);
        else
            real.Request_free(request);
        *request = some->all[i].receives ? *request : handle.request_null;
    }
    requests_wait(some);
    free(some->all);
    *some = (struct requests){0};
}

struct segments segments_of(int64_t count, int64_t element_bytes, int64_t segment_bytes)
{
    int64_t bytes = count * element_bytes;
    int64_t pieces = segment_bytes > 0 ? (bytes + segment_bytes - 1) / segment_bytes : 1;
    if (pieces > count)
        pieces = count;
    if (pieces < 1)
        pieces = 1;
    if (pieces > 4096)
        pieces = 4096;
    return (struct segments){.count = count, .pieces = (int)pieces};
}

void causeway_crossings(struct crossings *crossings)
{
    crossings->messages = atomic_load(&crossed_messages);
    crossings->bytes = atomic_load(&crossed_bytes);
}

void causeway_crossings_to(int site, struct crossings *crossings)
{
    int counted = site >= 0 && site < COUNTED_SITES;
    crossings->messages = counted ? atomic_load(&messages_to[site]) : 0;
    crossings->bytes = counted ? atomic_load(&bytes_to[site]) : 0;
}
