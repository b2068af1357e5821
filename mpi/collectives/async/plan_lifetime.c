#define _GNU_SOURCE
#include "collectives/async/plan_lifetime.h"

#include "collectives/topology/hierarchy_cache.h"
#include "collectives/topology/tags.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct plan *all;
static atomic_int count;

/* A handle that the program has freed, and the number of plans that still use it. */
static struct freed {
    struct freed *next;
    int users, is_type;
    MPI_Datatype type;
    MPI_Op op;
} *freed;

/* Guards the lists above. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- Plans --- */

static void own_vector(struct vector *said, int size, MPI_Count *counts, MPI_Aint *displs)
{
    for (int i = 0; i < size && has_counts(said); i++)
        counts[i] = vector_count(said, i);
    for (int i = 0; i < size && has_displs(said); i++)
        displs[i] = vector_place(said, i);
    *said = (struct vector){.large_counts = has_counts(said) ? counts : NULL,
                            .large_displs = has_displs(said) ? displs : NULL};
}

static const MPI_Datatype *own_types(const MPI_Datatype *types, int size, MPI_Datatype *own)
{
    for (int i = 0; types && i < size; i++)
        own[i] = types[i];
    return types ? own : NULL;
}

/* MPI requires a program to keep its arrays as long as the operation may need them. But every MPI has read
 * them by the time the call returns, and mpi4py frees them then. */
static int own_arrays(struct plan *plan)
{
    int size = plan->on->size;
    if (!has_counts(&plan->out) && !has_counts(&plan->in))
        return 1;
    MPI_Count *counts = malloc(2 * size * (sizeof(MPI_Count) + sizeof(MPI_Aint) + sizeof(MPI_Datatype)));
    if (!counts)
        return 0;
    MPI_Aint *displs = (MPI_Aint *)(counts + 2 * size);
    MPI_Datatype *types = (MPI_Datatype *)(displs + 2 * size);
    own_vector(&plan->out, size, counts, displs);
    own_vector(&plan->in, size, counts + size, displs + size);
    plan->types = own_types(plan->types, size, types);
    plan->into_types = own_types(plan->into_types, size, types + size);
    plan->owned = counts;
    return 1;
}

struct plan *plan_copy(const struct plan *plan)
{
    struct plan *one = malloc(sizeof *one);
    if (one)
        *one = *plan;
    if (!one || !own_arrays(one)) {
        free(one);
        return NULL;
    }
    one->holders = 1;
    hierarchy_hold(one->on);
    pthread_mutex_lock(&lock);
    one->next = all;
    all = one;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&count, 1);
    return one;
}

void plan_hold(struct plan *plan) { __atomic_add_fetch(&plan->holders, 1, __ATOMIC_RELAXED); }

static int names(const struct plan *plan, const struct freed *what)
{
    if (!what->is_type)
        return plan->op == what->op;
    int found = plan->type == what->type || plan->into_type == what->type || plan->shape.type == what->type ||
                plan->into_shape.type == what->type;
    for (int i = 0; i < plan->on->size && plan->types; i++)
        found |= plan->types[i] == what->type || plan->into_types[i] == what->type;
    return found;
}

void plan_release(struct plan *plan)
{
    if (__atomic_sub_fetch(&plan->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pthread_mutex_lock(&lock);
    struct plan **at = &all;
    while (*at != plan)
        at = &(*at)->next;
    *at = plan->next;
    for (struct freed *this = freed; this; this = this->next)
        this->users -= names(plan, this);
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&count, 1);
    if (plan->form == PERSISTENT)
        tags_return(plan->on, plan->tags);
    hierarchy_release(plan->on);
    free(plan->owned);
    free(plan);
}

/* --- Handles that plans use --- */

/* Removes the handles that no plan uses any more from the list, and returns them as a list. */
static struct freed *take_unused(void)
{
    struct freed *unused = NULL;
    pthread_mutex_lock(&lock);
    for (struct freed **at = &freed; *at;) {
        struct freed *this = *at;
        if (this->users > 0) {
            at = &this->next;
            continue;
        }
        *at = this->next;
        this->next = unused;
        unused = this;
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

/* Not called when the last plan ends, because freeing a datatype may call the program's attribute
 * callbacks. */
void plan_lifetime_free_unused(void)
{
    struct freed *list = take_unused();
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

/* Defers the freeing of a handle if a plan uses it. Returns whether it was deferred. */
static int put_off(struct freed what)
{
    struct freed *this = NULL;
    pthread_mutex_lock(&lock);
    for (const struct plan *plan = all; plan; plan = plan->next)
        what.users += names(plan, &what);
    if (what.users > 0 && (this = malloc(sizeof *this))) {
        *this = what;
        this->next = freed;
        freed = this;
    }
    pthread_mutex_unlock(&lock);
    return this != NULL;
}

int plan_lifetime_any(void) { return atomic_load(&count); }

int plan_lifetime_puts_off_type(MPI_Datatype type)
{
    return put_off((struct freed){.is_type = 1, .type = type});
}

int plan_lifetime_puts_off_op(MPI_Op op) { return put_off((struct freed){.op = op}); }
