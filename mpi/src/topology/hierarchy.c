#define _GNU_SOURCE
#include "topology/hierarchy.h"

#include "binding/fatal.h"
#include "select/choice.h"
#include "topology/sites.h"

#include <stdlib.h>

void hierarchy_free(struct hierarchy *on)
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

/* Copies the ways between the communicator's sites. number[s] says which of these site s of the world is, or
 * -1. */
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

/* Numbers the sites that take part by their lowest ranks, and groups the ranks. */
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

static int make_communicators(struct hierarchy *on, MPI_Group group)
{
    /* MPI_Comm_dup would call the program's own functions for copying attributes. */
    int status = real.Comm_create(on->user, group, &on->across);
    if (status)
        return status;
    MPI_Group local;
    status = real.Group_incl(group, on->local_size, on->members + on->first[on->site], &local);
    if (status)
        return status;
    status = real.Comm_create_group(on->across, local, 0, &on->local);
    real.Group_free(&local);
    if (status)
        return status;
    real.Comm_set_errhandler(on->across, handle.errors_return);
    real.Comm_set_errhandler(on->local, handle.errors_return);
    return MPI_SUCCESS;
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
