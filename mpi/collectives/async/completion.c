#define _GNU_SOURCE
#include "collectives/async/completion.h"

#include "collectives/topology/hierarchy_cache.h"

#include <pthread.h>
#include <stdlib.h>

/* Each completion has a tag of its own. Every MPI has at least this many tags on each communicator. */
#define PER_COMMUNICATOR 32768

/* Guards the variables below. It is never held during a call of the MPI, because an operation may end in that
 * call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm *selves;
static int self_count;
/* The number of completions made so far, and those of them that are free for reuse. */
static int made, free_count, *free_ones;
static struct failure {
    struct failure *next;
    struct hierarchy *on;
    int status;
} *failures;

static MPI_Errhandler raising;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* The MPI calls this error handler when it completes a request whose operation failed. It does not say which
 * request, so the handler reports every operation that has failed by now. */
static void raise_failures(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    pthread_mutex_lock(&lock);
    struct failure *list = failures;
    failures = NULL;
    pthread_mutex_unlock(&lock);
    while (list) {
        struct failure *this = list;
        list = this->next;
        hierarchy_raise(this->on, this->status);
        hierarchy_release(this->on);
        free(this);
    }
}

static void remember(struct hierarchy *on, int status)
{
    struct failure *this = malloc(sizeof *this);
    if (!this)
        return;
    hierarchy_hold(on);
    *this = (struct failure){.on = on, .status = status};
    pthread_mutex_lock(&lock);
    this->next = failures;
    failures = this;
    pthread_mutex_unlock(&lock);
}

/* In MPICH, a call that completes a request returns success after it has called a user-defined error handler.
 * It must return the error if the program has set MPI_ERRORS_RETURN. */
static void expect_failure(MPI_Comm self, struct hierarchy *on, int status)
{
    MPI_Errhandler wanted;
    int returns = 0;
    if (real.Comm_get_errhandler(hierarchy_handler(on), &wanted) == MPI_SUCCESS) {
        returns = wanted == handle.errors_return;
        real.Errhandler_free(&wanted);
    }
    if (!returns)
        remember(on, status);
    real.Comm_set_errhandler(self, returns ? handle.errors_return : raising);
}

static int make_self(MPI_Comm *self)
{
    MPI_Group group;
    int status = raising ? MPI_SUCCESS : real.Comm_create_errhandler(raise_failures, &raising);
    TRY(status, real.Comm_group(handle.comm_self, &group));
    if (status != MPI_SUCCESS)
        return status;
    status = real.Comm_create(handle.comm_self, group, self);
    real.Group_free(&group);
    TRY(status, real.Comm_set_errhandler(*self, handle.errors_return));
    return status;
}

/* Adds a communicator, and with it room for more completions. */
static int add_self(void)
{
    MPI_Comm self;
    int status = make_self(&self);
    if (status != MPI_SUCCESS)
        return status;
    pthread_mutex_lock(&lock);
    MPI_Comm *all = realloc(selves, (self_count + 1) * sizeof *all);
    selves = all ? all : selves;
    int *room = all ? realloc(free_ones, (size_t)(self_count + 1) * PER_COMMUNICATOR * sizeof *room) : NULL;
    free_ones = room ? room : free_ones;
    if (room)
        selves[self_count++] = self;
    pthread_mutex_unlock(&lock);
    if (!room)
        real.Comm_free(&self);
    /* cppcheck-suppress memleak ; selves keeps it */
    return room ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Takes a free completion. Returns false if there is none. */
static int take(int *completion)
{
    pthread_mutex_lock(&lock);
    int any = free_count > 0 || made < self_count * PER_COMMUNICATOR;
    if (any)
        *completion = free_count > 0 ? free_ones[--free_count] : made++;
    pthread_mutex_unlock(&lock);
    return any;
}

static MPI_Comm self_of(int completion)
{
    pthread_mutex_lock(&lock);
    MPI_Comm self = selves[completion / PER_COMMUNICATOR];
    pthread_mutex_unlock(&lock);
    return self;
}

int completion_make(int *completion, MPI_Request *request, int is_persistent)
{
    int status = MPI_SUCCESS;
    pthread_mutex_lock(&adding);
    while (!take(completion) && status == MPI_SUCCESS)
        status = add_self();
    pthread_mutex_unlock(&adding);
    if (status != MPI_SUCCESS)
        return status;
    status = (is_persistent ? real.Recv_init : real.Irecv)(
        NULL, 0, handle.byte, 0, *completion % PER_COMMUNICATOR, self_of(*completion), request);
    if (status != MPI_SUCCESS)
        completion_free(*completion, NULL);
    return status;
}

void completion_send(int completion, struct hierarchy *on, int status)
{
    static const char word = 1;
    MPI_Comm self = self_of(completion);
    MPI_Request request;
    if (status != MPI_SUCCESS)
        expect_failure(self, on, status);
    if (real.Isend(&word, status != MPI_SUCCESS, handle.byte, 0, completion % PER_COMMUNICATOR, self,
                   &request) == MPI_SUCCESS)
        real.Request_free(&request);
}

void completion_free(int completion, MPI_Request *request)
{
    if (request && real.Cancel(request) == MPI_SUCCESS)
        real.Wait(request, MPI_STATUS_IGNORE);
    pthread_mutex_lock(&lock);
    free_ones[free_count++] = completion;
    pthread_mutex_unlock(&lock);
}

static void forget_failures(void)
{
    while (failures) {
        struct failure *this = failures;
        failures = this->next;
        hierarchy_release(this->on);
        free(this);
    }
}

void completions_end(void)
{
    forget_failures();
    for (int i = 0; i < self_count; i++)
        real.Comm_free(&selves[i]);
    if (raising)
        real.Errhandler_free(&raising);
    free(selves);
    free(free_ones);
    selves = NULL;
    free_ones = NULL;
    self_count = made = free_count = 0;
}
