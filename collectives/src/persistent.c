#define _GNU_SOURCE
#include "persistent.h"

#include "enter.h"
#include "task.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Each has tags of its own: different ranks may start them in different order (MPI 4.0, section 6.13). */
static struct persistent {
    struct persistent *next;
    MPI_Request request;
    struct plan plan;
    int tags, tag;
} *all;
static atomic_int count;

/* What the program has freed: operations that are under way may still need it. */
static struct freed {
    struct freed *next;
    int is_type;
    MPI_Datatype type;
    MPI_Op op;
} *freed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void own_vector(struct vector *said, int size, MPI_Count *counts, MPI_Aint *places)
{
    for (int i = 0; i < size && has_counts(said); i++)
        counts[i] = vector_count(said, i);
    for (int i = 0; i < size && has_places(said); i++)
        places[i] = vector_place(said, i);
    *said = (struct vector){.large_counts = has_counts(said) ? counts : NULL, .large_places = has_places(said) ? places : NULL};
}

static const MPI_Datatype *own_types(const MPI_Datatype *types, int size, MPI_Datatype *own)
{
    for (int i = 0; types && i < size; i++)
        own[i] = types[i];
    return types ? own : NULL;
}

/* MPI wants a program to keep its arrays as long as they may be needed; every MPI has read them when the call returns, and mpi4py frees
 * them then. */
static int own_arrays(struct plan *plan)
{
    int size = plan->on->size;
    if (!has_counts(&plan->out) && !has_counts(&plan->in))
        return MPI_SUCCESS;
    MPI_Count *counts = malloc(2 * size * (sizeof(MPI_Count) + sizeof(MPI_Aint) + sizeof(MPI_Datatype)));
    if (!counts)
        return MPI_ERR_NO_MEM;
    MPI_Aint *places = (MPI_Aint *)(counts + 2 * size);
    MPI_Datatype *types = (MPI_Datatype *)(places + 2 * size);
    own_vector(&plan->out, size, counts, places);
    own_vector(&plan->in, size, counts + size, places + size);
    plan->types = own_types(plan->types, size, types);
    plan->into_types = own_types(plan->into_types, size, types + size);
    plan->owned = counts;
    return MPI_SUCCESS;
}

int plan_begin(struct plan *plan, MPI_Request *request)
{
    struct levels *on = plan->on;
    int tag = 0, status = MPI_SUCCESS;
    int tags = levels_tags(on, 0);
    TRY(status, own_arrays(plan));
    TRY(status, ending_make(&tag, request, 0));
    if (status == MPI_SUCCESS) {
        status = task_start(plan, tags, tag);
        if (status != MPI_SUCCESS)
            ending_free(tag, request);
    }
    if (status != MPI_SUCCESS)
        free(plan->owned);
    return levels_leave(on, status);
}

int plan_keep(struct plan *plan, MPI_Request *request)
{
    struct levels *on = plan->on;
    struct persistent *one = calloc(1, sizeof *one);
    int status = one ? MPI_SUCCESS : MPI_ERR_NO_MEM, tags = levels_tags(on, 1);
    TRY(status, own_arrays(plan));
    TRY(status, ending_make(&one->tag, request, 1));
    if (status == MPI_SUCCESS) {
        one->plan = *plan;
        one->tags = tags;
        one->request = *request;
        levels_hold(on);
        pthread_mutex_lock(&lock);
        one->next = all;
        all = one;
        pthread_mutex_unlock(&lock);
        atomic_fetch_add(&count, 1);
    } else {
        free(plan->owned);
        free(one);
    }
    return levels_leave(on, status);
}

/* The request's, where it is one of these; `out` takes it away. */
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

EXPORT int MPI_Start(MPI_Request *request)
{
    struct persistent *one = request ? find(*request, 0) : NULL;
    /* An ending that comes before the request has been started waits for it. */
    int status = one ? levels_leave(one->plan.on, task_start(&one->plan, one->tags, one->tag)) : MPI_SUCCESS;
    return status == MPI_SUCCESS ? PASS(Start, request) : status;
}
BOTH(Start);

EXPORT int MPI_Startall(int many, MPI_Request requests[])
{
    if (!atomic_load(&count))
        return PASS(Startall, many, requests);
    int status = MPI_SUCCESS;
    for (int i = 0; i < many; i++)
        TRY(status, MPI_Start(&requests[i]));
    return status;
}
BOTH(Startall);

static void free_one(struct persistent *one)
{
    int was_inside = levels_inside(1);
    levels_release(one->plan.on);
    ending_free(one->tag, NULL);
    free(one->plan.owned);
    free(one);
    levels_inside(was_inside);
}

EXPORT int MPI_Request_free(MPI_Request *request)
{
    struct persistent *one = request ? find(*request, 1) : NULL;
    if (one)
        free_one(one);
    return PASS(Request_free, request);
}
BOTH(Request_free);

/* Whether any operation may still use what the program frees. */
static int any_uses(void) { return tasks_any() || atomic_load(&count); }

/* Frees what was put off, once nothing is under way. */
static void free_late(void)
{
    if (any_uses())
        return;
    pthread_mutex_lock(&lock);
    struct freed *list = freed;
    freed = NULL;
    pthread_mutex_unlock(&lock);
    while (list) {
        struct freed *this = list;
        list = this->next;
        if (this->is_type)
            real.Type_free(&this->type);
        else
            real.Op_free(&this->op);
        free(this);
    }
}

/* Whether a handle that the program frees is to be freed later. */
static int put_off(struct freed what)
{
    if (freed)
        free_late();
    if (!any_uses())
        return 0;
    struct freed *this = malloc(sizeof *this);
    if (!this)
        return 0;
    *this = what;
    pthread_mutex_lock(&lock);
    this->next = freed;
    freed = this;
    pthread_mutex_unlock(&lock);
    return 1;
}

EXPORT int MPI_Type_free(MPI_Datatype *type)
{
    int combiner, integers, addresses, types;
    /* One that may not be freed is the MPI's to complain of. */
    if (type && any_uses() && *type != handle.datatype_null &&
        real.Type_get_envelope(*type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS && combiner != MPI_COMBINER_NAMED &&
        put_off((struct freed){.is_type = 1, .type = *type})) {
        *type = handle.datatype_null;
        return MPI_SUCCESS;
    }
    return PASS(Type_free, type);
}
BOTH(Type_free);

EXPORT int MPI_Op_free(MPI_Op *op)
{
    if (op && any_uses() && *op != handle.op_null && put_off((struct freed){.op = *op})) {
        *op = handle.op_null;
        return MPI_SUCCESS;
    }
    return PASS(Op_free, op);
}
BOTH(Op_free);

void persistent_end(void)
{
    /* The requests are the program's to free, as late as in what MPI_Finalize calls. */
    while (all)
        free_one(find(all->request, 1));
    free_late();
}
