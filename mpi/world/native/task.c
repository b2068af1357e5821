#define _GNU_SOURCE
#include "world/native/task.h"

#include "common/coroutine/coroutine.h"
#include "world/handles/slots.h"

#include <stdlib.h>

enum {
    /* Above those of blocking operations and of MPI_Comm_create_group, and below SLOT_TAGS: so many
     * operations of a communicator, each with room for the tags of a grid of 40 dimensions. */
    FIRST_TAG = 6144,
    TAGS_EACH = 96,
    OPERATIONS = 96,
};
_Static_assert(FIRST_TAG + TAGS_EACH * OPERATIONS <= SLOT_TAGS, "tags of tasks lie in the slot");

struct task {
    /* First: its address is the task's. */
    struct coroutine coroutine;
    struct task *next;
    struct work work;
    /* The request's. It is of no message, and may outlive the task. */
    struct far *far;
    int tags, has_begun;
    int (*is_over)(void *of);
    void *awaits;
};

int task_count;

/* In the order in which they were started. */
static struct task *tasks;

static struct task *running(void) { return (struct task *)coroutine_current(); }

int task_is_running(void) { return task_count && running(); }

int task_tags(void) { return task_is_running() ? running()->tags : 0; }

void task_await(int (*is_over)(void *of), void *of)
{
    struct task *task = running();
    task->is_over = is_over;
    task->awaits = of;
    coroutine_leave();
}

static void body(struct coroutine *coroutine)
{
    struct task *task = (struct task *)coroutine;
    task->far->error = task->work.run(task->work.of);
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

/* Tags come round: then the earlier operation that has them ends first. */
static int may_begin(const struct task *task)
{
    if (!task->tags)
        return 1;
    for (const struct task *other = tasks; other != task; other = other->next)
        if (other->far->comm == task->far->comm && other->tags == task->tags)
            return 0;
    return 1;
}

static int may_go_on(struct task *task)
{
    if (!task->has_begun)
        return task->has_begun = may_begin(task) && coroutine_begin(&task->coroutine, body);
    return task->is_over(task->awaits);
}

static void finish(struct task *task)
{
    struct task **at = &tasks;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    task_count--;
    task->work.end(task->work.of);
    task->far->operation.state = OPERATION_DONE;
    far_complete(task->far);
    free(task);
}

/* True where it went on. */
static int take_up(struct task *task)
{
    if (!may_go_on(task))
        return 0;
    coroutine_resume(&task->coroutine);
    if (task->coroutine.is_over)
        finish(task);
    return 1;
}

int tasks_run(void)
{
    int taken_up = 0;
    /* A task's call of the MPI may have led here. */
    if (task_is_running())
        return 0;
    for (struct task *task = tasks, *next; task; task = next) {
        next = task->next;
        taken_up += take_up(task);
    }
    return taken_up;
}

static int start(struct comm *comm, const struct work *work, int tags, MPI_Request *request)
{
    struct task *task = calloc(1, sizeof *task);
    struct far *far = calloc(1, sizeof *far);
    /* As a send its status is empty, and it is not counted among receives. */
    if (far)
        *far = (struct far){.comm = comm, .operation = {.is_send = 1}};
    int status = task && far ? far_request(far, request) : MPI_ERR_NO_MEM;
    if (status != MPI_SUCCESS) {
        free(task);
        free(far);
        return status;
    }
    task->work = *work;
    task->far = far;
    task->tags = tags;
    struct task **end = &tasks;
    while (*end)
        end = &(*end)->next;
    *end = task;
    task_count++;
    take_up(task);
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
