#define _GNU_SOURCE
#include "world/native/task.h"

#include "world/handles/slots.h"

#include <stdlib.h>

enum {
    /* Tags above those of blocking operations and of MPI_Comm_create_group, and below SLOT_TAGS, for this
     * many operations of a communicator, each with room for the tags of a grid of 40 dimensions. */
    FIRST_TAG = 6144,
    TAGS_EACH = 96,
    OPERATIONS = 96,
};
_Static_assert(FIRST_TAG + TAGS_EACH * OPERATIONS <= SLOT_TAGS, "tags of tasks lie in the slot");

struct beside {
    /* First, because its address is the task's. */
    struct task task;
    struct work work;
    /* The record of the request. It belongs to no message, and may outlive the task. */
    struct far *far;
    int tags;
};

static struct beside *running(void) { return (struct beside *)task_running(); }

int task_tags(void) { return task_is_running() ? running()->tags : 0; }

static void run(struct task *task)
{
    struct beside *beside = (struct beside *)task;
    beside->far->error = beside->work.run(beside->work.of);
}

void task_receives(const MPI_Status *status)
{
    struct far *far = running()->far;
    MPI_Count bytes = 0;
    real.Get_elements_x(status, handle.byte, &bytes);
    far->is_finished = 1;
    far->operation.is_send = 0;
    far->operation.source = status->MPI_SOURCE;
    far->operation.tag = status->MPI_TAG;
    far->operation.bytes = far->operation.sent = (uint64_t)bytes;
}

static int has_same_tags(const struct task *task, const struct task *earlier)
{
    const struct beside *own = (const struct beside *)task, *other = (const struct beside *)earlier;
    return own->tags && own->far->comm == other->far->comm && own->tags == other->tags;
}

static void end(struct task *task)
{
    struct beside *beside = (struct beside *)task;
    beside->work.end(beside->work.of);
    beside->far->operation.state = OPERATION_DONE;
    far_complete(beside->far);
    free(beside);
}

static const struct task_kind kind = {.run = run, .has_same_tags = has_same_tags, .end = end};

static int start(struct comm *comm, const struct work *work, int tags, MPI_Request *request)
{
    struct beside *beside = calloc(1, sizeof *beside);
    struct far *far = calloc(1, sizeof *far);
    /* Marked as a send, so that its status is empty, and it is not counted among receives. */
    if (far)
        *far = (struct far){.comm = comm, .operation = {.is_send = 1}};
    int status = beside && far ? far_request(far, request) : MPI_ERR_NO_MEM;
    if (status != MPI_SUCCESS) {
        free(beside);
        free(far);
        return status;
    }
    *beside = (struct beside){.task.kind = &kind, .work = *work, .far = far, .tags = tags};
    tasks_add(&beside->task, NULL);
    tasks_begin(&beside->task);
    return MPI_SUCCESS;
}

int task_start(struct comm *comm, const struct work *work, MPI_Request *request)
{
    int tags = FIRST_TAG + (int)(comm->operations++ % OPERATIONS) * TAGS_EACH;
    return start(comm, work, tags, request);
}

int task_start_alone(struct comm *comm, const struct work *work, MPI_Request *request)
{
    return start(comm, work, 0, request);
}

void tasks_end(void) { coroutines_end(); }
