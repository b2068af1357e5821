#define _GNU_SOURCE
#include "collectives/topology/hierarchy.h"

#include "collectives/binding/fatal.h"
#include "collectives/select/choice.h"
#include "collectives/topology/sites.h"

#include <stdlib.h>

/* The `local` communicator of MPI_COMM_WORLD, and the group of its ranks. Where sites run their own MPIs,
 * whose threads take turns, a communicator with the same ranks at this site shares it, because an MPI has few
 * communicators. All ranks call the blocking operations of both in the same order, and other operations use
 * no collectives on it. */
static MPI_Comm shared_local;
static MPI_Group shared_group;
static int is_shared;

static int may_share(MPI_Group local)
{
    int result = MPI_UNEQUAL;
    return is_shared && real.Group_compare(local, shared_group, &result) == MPI_SUCCESS &&
           result == MPI_IDENT;
}

static void share(struct hierarchy *on, MPI_Group local)
{
    if (on->user != handle.comm_world || !mpi_calls_are_worlds() ||
        real.Group_union(local, handle.group_empty, &shared_group) != MPI_SUCCESS)
        return;
    shared_local = on->local;
    is_shared = 1;
}

void hierarchy_free(struct hierarchy *on)
{
    if (on->local != handle.comm_null && !(is_shared && on->local == shared_local))
        real.Comm_free(&on->local);
    if (on->across != handle.comm_null)
        real.Comm_free(&on->across);
    free(on->site_of);
    free(on->links);
    free(on->tags_used);
    free(on);
}

/* Copies the links between the communicator's sites. number[s] is the number that the world's site s has in
 * the communicator, or -1. */
static void learn_links(struct hierarchy *on, const int number[])
{
    if (on->sites < 3 || !choice_link(0, 0))
        return;
    on->links = must_have(calloc((size_t)on->sites * on->sites, sizeof *on->links));
    for (int i = 0; i < sites_count; i++)
        for (int j = 0; j < sites_count; j++)
            if (number[i] >= 0 && number[j] >= 0)
                on->links[number[i] * on->sites + number[j]] = *choice_link(i, j);
}

/* Numbers the sites of the communicator by their lowest ranks, and groups the ranks by site. */
static void group_by_site(struct hierarchy *on)
{
    int *number = must_have(malloc(sites_count * sizeof *number));
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

/* If the MPI has no more communicators, the program gets no error: its operations are then the MPI's own.
 * MPI_Comm_dup would call the program's functions that copy attributes. */
static int make_across(struct hierarchy *on, MPI_Group group)
{
    MPI_Errhandler errors;
    int status = real.Comm_get_errhandler(on->user, &errors);
    TRY(status, real.Comm_set_errhandler(on->user, handle.errors_return));
    TRY(status, real.Comm_create(on->user, group, &on->across));
    real.Comm_set_errhandler(on->user, errors);
    real.Errhandler_free(&errors);
    return status;
}

static int make_communicators(struct hierarchy *on, MPI_Group group)
{
    int status = make_across(on, group);
    if (status)
        return status;
    MPI_Group local;
    status = real.Group_incl(group, on->local_size, on->members + on->first[on->site], &local);
    if (status)
        return status;
    if (may_share(local)) {
        on->local = shared_local;
    } else {
        status = real.Comm_create_group(on->across, local, 0, &on->local);
        TRY(status, real.Comm_set_errhandler(on->local, handle.errors_return));
        if (status == MPI_SUCCESS)
            share(on, local);
    }
    real.Group_free(&local);
    return TRY(status, real.Comm_set_errhandler(on->across, handle.errors_return));
}

struct hierarchy *hierarchy_make(MPI_Comm comm)
{
    int inter, size, rank;
    if (real.Comm_test_inter(comm, &inter) || inter || real.Comm_size(comm, &size) || size < 2 ||
        real.Comm_rank(comm, &rank))
        return NULL;
    MPI_Group group;
    if (real.Comm_group(comm, &group))
        return NULL;
    struct hierarchy *on = must_have(calloc(1, sizeof *on));
    on->user = comm;
    on->holders = 1;
    on->across = on->local = handle.comm_null;
    on->size = size;
    on->rank = rank;
    on->site_of = must_have(calloc(3 * size + sites_count + 1, sizeof(int)));
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
    return NULL;
}
