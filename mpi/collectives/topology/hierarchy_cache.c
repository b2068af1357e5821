#define _GNU_SOURCE
#include "collectives/topology/hierarchy_cache.h"

#include "collectives/select/choice.h"
#include "collectives/topology/sites.h"

#include <pthread.h>

/* A communicator that is not improved carries this. */
static struct hierarchy not_improved;

static int keyval;
static int keyval_made;
static pthread_mutex_t making_keyval = PTHREAD_MUTEX_INITIALIZER;

/* True while this thread is inside one of our operations. Collectives that the MPI itself calls then are left
 * to it. */
static _Thread_local int inside __attribute__((tls_model("initial-exec")));

static int copy_none(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

/* The hierarchies that communicators carry, newest first. Kept because some programs end MPI without freeing
 * all communicators. */
static struct hierarchy *carried;
static pthread_mutex_t carrying = PTHREAD_MUTEX_INITIALIZER;

static int set_down(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    pthread_mutex_lock(&carrying);
    for (struct hierarchy **at = &carried; *at; at = &(*at)->next)
        if (*at == value) {
            *at = (*at)->next;
            break;
        }
    pthread_mutex_unlock(&carrying);
    return MPI_SUCCESS;
}

static void carry(MPI_Comm comm, struct hierarchy *on)
{
    if (real.Comm_set_attr(comm, keyval, on) != MPI_SUCCESS || on == &not_improved)
        return;
    pthread_mutex_lock(&carrying);
    on->next = carried;
    carried = on;
    pthread_mutex_unlock(&carrying);
}

static int make_keyval(void)
{
    pthread_mutex_lock(&making_keyval);
    if (!keyval_made)
        keyval_made = real.Comm_create_keyval(copy_none, set_down, &keyval, NULL) == MPI_SUCCESS;
    pthread_mutex_unlock(&making_keyval);
    return keyval_made;
}

/* The hierarchies without references. An operation may release the last reference inside the MPI's progress
 * engine, where no communicator may be freed. So the program's next call frees them. */
static struct hierarchy *unheld;

static void free_unheld(void)
{
    if (!__atomic_load_n(&unheld, __ATOMIC_RELAXED))
        return;
    struct hierarchy *list = __atomic_exchange_n(&unheld, NULL, __ATOMIC_ACQUIRE);
    while (list) {
        struct hierarchy *on = list;
        list = on->next;
        hierarchy_free(on);
    }
}

int hierarchy_wanted(void) { return sites_count > 1 || choice_by_rank; }

struct hierarchy *hierarchy_enter(MPI_Comm comm)
{
    /* Hierarchies exist only if all functions of the MPI were found. */
    if (!hierarchy_wanted() || inside || comm == handle.comm_null)
        return NULL;
    inside = 1;
    free_unheld();
    struct hierarchy *on = &not_improved;
    int is_known = 0;
    if (keyval_made || make_keyval()) {
        if (real.Comm_get_attr(comm, keyval, &on, &is_known) == MPI_SUCCESS && !is_known) {
            struct hierarchy *made = hierarchy_make(comm);
            on = made ? made : &not_improved;
            carry(comm, on);
        }
    }
    if (on != &not_improved)
        return on;
    inside = 0;
    return NULL;
}

void hierarchy_refuse(MPI_Comm comm)
{
    if (hierarchy_wanted() && !inside && (keyval_made || make_keyval()))
        carry(comm, &not_improved);
}

struct hierarchy *hierarchy_carried(MPI_Comm comm)
{
    struct hierarchy *on;
    int is_known;
    if (!keyval_made || inside || comm == handle.comm_null)
        return NULL;
    return real.Comm_get_attr(comm, keyval, &on, &is_known) == MPI_SUCCESS && is_known ? on : NULL;
}

int hierarchy_known(MPI_Comm comm) { return hierarchy_wanted() && hierarchy_carried(comm); }

void hierarchy_hold(struct hierarchy *on) { __atomic_add_fetch(&on->holders, 1, __ATOMIC_RELAXED); }

void hierarchy_release(struct hierarchy *on)
{
    if (__atomic_sub_fetch(&on->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    on->next = __atomic_load_n(&unheld, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&unheld, &on->next, on, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

int hierarchy_inside(int is_inside)
{
    int was = inside;
    inside = is_inside;
    return was;
}

int hierarchy_leave(struct hierarchy *on, int status)
{
    inside = 0;
    return status == MPI_SUCCESS ? status : hierarchy_raise(on, status);
}

/* A communicator that the program has freed no longer has an error handler. */
MPI_Comm hierarchy_handler(const struct hierarchy *on)
{
    return on->user == handle.comm_null ? handle.comm_world : on->user;
}

int hierarchy_raise(const struct hierarchy *on, int status)
{
    real.Comm_call_errhandler(hierarchy_handler(on), status);
    return status;
}

void hierarchy_forget(MPI_Comm comm)
{
    struct hierarchy *on = hierarchy_carried(comm);
    if (inside)
        return;
    inside = 1;
    if (on) {
        real.Comm_delete_attr(comm, keyval);
        if (on != &not_improved) {
            on->user = handle.comm_null;
            hierarchy_release(on);
        }
    }
    free_unheld();
    inside = 0;
}

void hierarchies_forget(void)
{
    while (carried) {
        struct hierarchy *last = carried;
        hierarchy_forget(last->user);
        /* The MPI no longer knows this communicator. */
        if (carried == last)
            carried = last->next;
    }
}

void hierarchies_end(void)
{
    free_unheld();
    if (keyval_made)
        real.Comm_free_keyval(&keyval);
    keyval_made = 0;
}
