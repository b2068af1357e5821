#define _GNU_SOURCE
#include "collectives/transfer/requests.h"

#include "collectives/binding/delivery.h"
#include "collectives/select/choice.h"
#include "collectives/transfer/copies.h"
#include "collectives/transfer/counters.h"
#include "collectives/transfer/segments.h"
#include "collectives/transfer/waiting.h"
#include "common/binding/texts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Counts above INT_MAX occur only in calls of MPI 4. An MPI that has those calls has these as well. */
typedef int large_send(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int large_receive(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static int isend(const void *from, int64_t count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    if (count <= INT_MAX)
        return real.Isend(from, (int)count, type, to, tag, comm, request);
    large_send *send = (large_send *)mpi_calls_find("Isend_c");
    return send ? send(from, count, type, to, tag, comm, request) : MPI_ERR_COUNT;
}

static int irecv(void *into, int64_t count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    if (count <= INT_MAX)
        return real.Irecv(into, (int)count, type, from, tag, comm, request);
    large_receive *receive = (large_receive *)mpi_calls_find("Irecv_c");
    return receive ? receive(into, count, type, from, tag, comm, request) : MPI_ERR_COUNT;
}

int requests_send(struct requests *some, const struct hierarchy *on, const void *from, int64_t count,
                  MPI_Datatype type, int to, int tag)
{
    struct request *request = one_more(some);
    if (!request)
        return MPI_ERR_NO_MEM;
    MPI_Count size = 1;
    real.Type_size_x(type, &size);
    int64_t bytes = count * size;
    int is_far = on->site_of[to] != on->site;
    if (is_far)
        counters_add(on->site_of[to], bytes);
    *request = (struct request){.receives = 0};
    if (is_far && copies_are_wanted(bytes)) {
        request->handle = handle.request_null;
        int copy = copies_send(on->across, from, count, type, bytes, to, on->tags + tag);
        if (copy != MPI_ERR_NO_MEM) {
            some->count += copy == MPI_SUCCESS;
            return copy;
        }
    }
    int status = isend(from, count, type, to, on->tags + tag, on->across, &request->handle);
    some->count += status == MPI_SUCCESS;
    return status;
}

int requests_receive(struct requests *some, const struct hierarchy *on, void *into, int64_t count,
                     MPI_Datatype type, int from, int tag)
{
    struct request *request = one_more(some);
    if (!request)
        return MPI_ERR_NO_MEM;
    *request = (struct request){.receives = 1, .from = from, .into = into, .type = type};
    MPI_Count size = 1;
    if (on->site_of[from] != on->site && real.Type_size_x(type, &size) == MPI_SUCCESS) {
        request->on = on;
        request->bytes = count * size;
    }
    int status = irecv(into, count, type, from, on->tags + tag, on->across, &request->handle);
    some->count += status == MPI_SUCCESS;
    return status;
}

/* Intel MPI holds a larger message back until its receiver has answered. */
#define CUT_BYTES COPIED_BYTES

/* Cuts a message into pieces. Both ends know its size in bytes, and decide alike. A message larger than all
 * copies together waits anyway, so it is not cut. */
static struct segments pieces_of(const struct hierarchy *on, int64_t count, const struct shape *shape,
                                 int other)
{
    int64_t bytes = shape_bytes(shape, count), segment = choice_segment(),
            piece = segment < CUT_BYTES ? segment : CUT_BYTES;
    int is_cut = delivery_is_cut && on->site_of[other] != on->site && piece > 0 && bytes > piece &&
                 bytes <= MAX_COPIED_BYTES;
    return is_cut ? segments_of(bytes, 1, piece) : (struct segments){bytes, 1};
}

int requests_send_cut(struct requests *some, const struct hierarchy *on, const void *from, int64_t count,
                      const struct shape *shape, int to, int tag, struct bytes *bytes)
{
    struct segments segments = pieces_of(on, count, shape, to);
    *bytes = (struct bytes){0};
    if (segments.pieces == 1)
        return requests_send(some, on, from, count, shape->type, to, tag);
    int status = bytes_pack(from, count, shape, bytes);
    for (int i = 0; i < segments.pieces; i++)
        TRY(status, requests_send(some, on, bytes->at + segment_at(&segments, i), segment_count(&segments, i),
                                  handle.byte, to, tag));
    return status;
}

int requests_receive_cut(struct requests *some, const struct hierarchy *on, void *into, int64_t count,
                         const struct shape *shape, int from, int tag, struct bytes *bytes)
{
    struct segments segments = pieces_of(on, count, shape, from);
    *bytes = (struct bytes){0};
    if (segments.pieces == 1)
        return requests_receive(some, on, into, count, shape->type, from, tag);
    int status = bytes_room(into, count, shape, bytes);
    for (int i = 0; i < segments.pieces; i++)
        TRY(status, requests_receive(some, on, bytes->at + segment_at(&segments, i),
                                     segment_count(&segments, i), handle.byte, from, tag));
    return status;
}

int requests_wait(struct requests *some)
{
    int status = MPI_SUCCESS;
    /* Waits for the requests one after the other, so that an error belongs to its request, and no request is
     * left over. */
    for (int i = 0; i < some->count; i++) {
        int this = requests_wait_for(some, i);
        if (status == MPI_SUCCESS)
            status = this;
    }
    some->count = 0;
    return status;
}

/* Whether a message of another length is a complete text, to which another MPI gives another length. */
static int is_whole_text(const struct request *request, int64_t sent)
{
    struct shape shape;
    return texts_may_differ(request->bytes) && texts_are_one(sent, request->bytes) &&
           shape_of(request->type, &shape) && shape.is_contiguous &&
           texts_settle(request->into, request->bytes, sent);
}

/* Reports a message that does not have the expected length: ranks have called the operation with different
 * sizes. */
static int judge_length(const struct request *request, const MPI_Status *received, int status)
{
    MPI_Count sent = 0;
    int class = MPI_SUCCESS;
    if (status != MPI_SUCCESS)
        real.Error_class(status, &class);
    if (!request->on || (status != MPI_SUCCESS && class != MPI_ERR_TRUNCATE) ||
        real.Get_elements_x(received, handle.byte, &sent) != MPI_SUCCESS ||
        (status == MPI_SUCCESS && (sent == request->bytes || is_whole_text(request, sent))))
        return status;
    /* For a message that is too long, some MPIs report only the length that they have kept. */
    int is_more = status != MPI_SUCCESS && sent <= request->bytes;
    fprintf(
        stderr,
        "causeway collectives: rank %d has sent %s%lld bytes to rank %d, which expects %lld (ranks of the "
        "communicator; one may send what its whole site has): all ranks have to name as many\n",
        request->from, is_more ? "more than " : "", (long long)(is_more ? request->bytes : sent),
        request->on->rank, (long long)request->bytes);
    return status != MPI_SUCCESS ? status : MPI_ERR_TRUNCATE;
}

int requests_wait_for(struct requests *some, int which)
{
    struct request *request = &some->all[which];
    MPI_Status received;
    if (request->handle == handle.request_null)
        return MPI_SUCCESS;
    int status = waiting_for(&request->handle, request->on ? &received : MPI_STATUS_IGNORE);
    return judge_length(request, &received, status);
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
