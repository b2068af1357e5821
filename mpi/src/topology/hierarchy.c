#define _GNU_SOURCE
#include "topology/hierarchy.h"

#include "algorithms/algorithms.h"
#include "async/completion.h"
#include "async/persistent.h"
#include "async/plan_lifetime.h"
#include "async/task.h"
#include "select/choice.h"
#include "topology/sites.h"
#include "transfer/transfer.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* What a communicator carries that is not improved. */
static struct hierarchy plain;

static int keyval;
static int keyval_made;
static pthread_mutex_t making_keyval = PTHREAD_MUTEX_INITIALIZER;

/* This thread is inside an operation of ours: what the MPI calls meanwhile is its own business. */
static _Thread_local int inside __attribute__((tls_model("initial-exec")));

static int copy_none(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

/* Those that communicators carry, the last made first: some programs end MPI without freeing all communicators. */
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
    if (real.Comm_set_attr(comm, keyval, on) != MPI_SUCCESS || on == &plain)
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

static void hierarchy_free(struct hierarchy *on)
{
    if (on->local != handle.comm_null)
        real.Comm_free(&on->local);
    if (on->across != handle.comm_null)
        real.Comm_free(&on->across);
    free(on->site_of);
    free(on->links);
    free(on->tags_used);
    free(on);
}

/* Those that nobody holds any more. The last to hold them may have been an operation that ended in the MPI's progress, where no
 * communicator is to be freed: the program's next call does it. */
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

/* `number`: which site of the communicator a site of the world is, or -1. */
static void learn_links(struct hierarchy *on, const int number[])
{
    if (on->sites < 3 || !choice_link(0, 0) || !(on->links = calloc((size_t)on->sites * on->sites, sizeof *on->links)))
        return;
    for (int i = 0; i < sites_count; i++)
        for (int j = 0; j < sites_count; j++)
            if (number[i] >= 0 && number[j] >= 0)
                on->links[number[i] * on->sites + number[j]] = *choice_link(i, j);
}

/* Numbers the sites that take part by their lowest ranks, and groups the ranks. */
static void group_by_site(struct hierarchy *on)
{
    int *number = malloc(sites_count * sizeof *number);
    for (int s = 0; s < sites_count; s++)
        number[s] = -1;
    on->sites = 0;
    for (int i = 0; i < on->size; i++) {
        int *of = &number[on->site_of[i]];
        if (*of < 0)
            *of = on->sites++;
        on->site_of[i] = *of;
    }
    learn_links(on, number);
    free(number);
    int next = 0;
    on->in_order = 1;
    for (int s = 0; s < on->sites; s++) {
        on->first[s] = next;
        for (int i = 0; i < on->size; i++)
            if (on->site_of[i] == s) {
                on->in_order &= i == next;
                on->local_rank_of[i] = next - on->first[s];
                on->members[next++] = i;
            }
    }
    on->first[on->sites] = next;
    for (int s = 0; s < on->sites; s++)
        on->largest = site_size(on, s) > on->largest ? site_size(on, s) : on->largest;
    on->site = on->site_of[on->rank];
    on->local_size = site_size(on, on->site);
    on->local_rank = on->local_rank_of[on->rank];
}

static int make_communicators(struct hierarchy *on, MPI_Group group)
{
    /* No MPI_Comm_dup: it would call the program's own functions for copying attributes. */
    int status = real.Comm_create(on->user, group, &on->across);
    if (status)
        return status;
    MPI_Group here;
    status = real.Group_incl(group, on->local_size, on->members + on->first[on->site], &here);
    if (status)
        return status;
    status = real.Comm_create_group(on->across, here, 0, &on->local);
    real.Group_free(&here);
    if (status)
        return status;
    real.Comm_set_errhandler(on->across, handle.errors_return);
    real.Comm_set_errhandler(on->local, handle.errors_return);
    return MPI_SUCCESS;
}

static struct hierarchy *hierarchy_make(MPI_Comm comm)
{
    int inter, size, rank;
    if (real.Comm_test_inter(comm, &inter) || inter || real.Comm_size(comm, &size) || size < 2 ||
        real.Comm_rank(comm, &rank))
        return &plain;
    MPI_Group group;
    if (real.Comm_group(comm, &group))
        return &plain;
    struct hierarchy *on = calloc(1, sizeof *on);
    on->user = comm;
    on->holders = 1;
    on->across = on->local = handle.comm_null;
    on->size = size;
    on->rank = rank;
    on->site_of = calloc(3 * size + sites_count + 1, sizeof(int));
    on->local_rank_of = on->site_of + size;
    on->members = on->local_rank_of + size;
    on->first = on->members + size;
    int improved = sites_of_group(group, size, on->site_of);
    if (improved) {
        group_by_site(on);
        improved = (on->sites > 1 || choice_by_rank) && make_communicators(on, group) == MPI_SUCCESS;
    }
    real.Group_free(&group);
    if (improved)
        return on;
    hierarchy_free(on);
    return &plain;
}

int hierarchy_wanted(void) { return sites_count > 1 || choice_by_rank; }

struct hierarchy *hierarchy_enter(MPI_Comm comm)
{
    /* They are only where all calls were found. */
    if (!hierarchy_wanted() || inside || comm == handle.comm_null)
        return NULL;
    inside = 1;
    free_unheld();
    struct hierarchy *on = &plain;
    int is_known = 0;
    if (keyval_made || make_keyval()) {
        if (real.Comm_get_attr(comm, keyval, &on, &is_known) == MPI_SUCCESS && !is_known) {
            on = hierarchy_make(comm);
            carry(comm, on);
        }
    }
    if (on != &plain) {
        transfer_reap(0);
        return on;
    }
    inside = 0;
    return NULL;
}

/* What a communicator carries, if anything. */
static struct hierarchy *carried_by(MPI_Comm comm)
{
    struct hierarchy *on;
    int is_known;
    if (!keyval_made || inside || comm == handle.comm_null)
        return NULL;
    return real.Comm_get_attr(comm, keyval, &on, &is_known) == MPI_SUCCESS && is_known ? on : NULL;
}

int hierarchy_known(MPI_Comm comm) { return hierarchy_wanted() && carried_by(comm); }

/* Persistent requests of a communicator that are improved at a time, where the MPI has tags for so many. */
#define MAX_PERSISTENT 32768

static int tags_of_one(const struct hierarchy *on) { return TAG_PART + (on->size < MAX_PARTS ? on->size : MAX_PARTS); }

/* How many operations have tags of their own beside those that wait, which have the first. */
static int tags_for(const struct hierarchy *on)
{
    static int most;
    int is_there, *value;
    if (!most)
        most = real.Comm_get_attr(handle.comm_world, MPI_TAG_UB, &value, &is_there) == MPI_SUCCESS && is_there ? *value : 32767;
    return (int)(((int64_t)most + 1) / tags_of_one(on)) - 1;
}

static int first_unused(const struct hierarchy *on, int number, int count)
{
    while (number < count && on->tags_used_anywhere[number / 8] & 1 << number % 8)
        number++;
    return number;
}

/* Ranks ask for numbers alike, but give them back each when it likes: having come to the end, they tell each other which are in use. Those
 * given out since then are below on->next_tag_number. */
static int take_number(struct hierarchy *on, int count)
{
    int bytes = (count + 7) / 8;
    if (!on->tags_used && !(on->tags_used = calloc(2, bytes)))
        return -1;
    on->tags_used_anywhere = on->tags_used + bytes;
    int number = first_unused(on, on->next_tag_number, count);
    if (number == count) {
        if (real.Allreduce(on->tags_used, on->tags_used_anywhere, bytes, handle.byte, handle.bitwise_or, on->across) != MPI_SUCCESS)
            return -1;
        number = first_unused(on, 0, count);
    }
    on->next_tag_number = number < count ? number + 1 : count;
    if (number == count)
        return -1;
    __atomic_fetch_or(&on->tags_used[number / 8], (unsigned char)(1 << number % 8), __ATOMIC_RELAXED);
    return number;
}

int hierarchy_tags(struct hierarchy *on, int is_persistent)
{
    /* All ranks call in the same order. Persistent requests have the first half. */
    int all = tags_for(on), persistent = all / 2 < MAX_PERSISTENT ? all / 2 : MAX_PERSISTENT, number = -1;
    if (is_persistent && persistent > 0)
        number = take_number(on, persistent);
    else if (!is_persistent && all > persistent)
        number = persistent + (int)(on->begun++ % (unsigned)(all - persistent));
    return number < 0 ? -1 : (1 + number) * tags_of_one(on);
}

void hierarchy_return_tags(struct hierarchy *on, int tags)
{
    int number = tags / tags_of_one(on) - 1;
    __atomic_fetch_and(&on->tags_used[number / 8], (unsigned char)~(1 << number % 8), __ATOMIC_RELAXED);
}

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

/* One that the program has freed has no handler any more. */
MPI_Comm hierarchy_handler(const struct hierarchy *on) { return on->user == handle.comm_null ? handle.comm_world : on->user; }

int hierarchy_raise(const struct hierarchy *on, int status)
{
    real.Comm_call_errhandler(hierarchy_handler(on), status);
    return status;
}

void hierarchy_finish(MPI_Comm comm)
{
    struct hierarchy *on = carried_by(comm);
    if (on)
        tasks_finish(on);
}

void hierarchy_forget(MPI_Comm comm)
{
    struct hierarchy *on = carried_by(comm);
    if (inside)
        return;
    inside = 1;
    if (on) {
        real.Comm_delete_attr(comm, keyval);
        if (on != &plain) {
            on->user = handle.comm_null;
            hierarchy_release(on);
        }
    }
    free_unheld();
    inside = 0;
}

void hierarchy_end(void)
{
    if (!hierarchy_wanted())
        return;
    tasks_finish_all();
    persistent_end();
    plan_lifetime_end();
    while (carried) {
        struct hierarchy *last = carried;
        hierarchy_forget(last->user);
        /* The MPI no longer knows this communicator. */
        if (carried == last)
            carried = last->next;
    }
    transfer_reap(1);
    tasks_end();
    completions_end();
    free_unheld();
    if (keyval_made)
        real.Comm_free_keyval(&keyval);
    keyval_made = 0;
    choice_forget();
}
