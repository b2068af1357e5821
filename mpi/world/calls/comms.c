/* Calls that describe communicators, and make new ones. */
#define _GNU_SOURCE
#include "world/basic/basic.h"
#include "world/calls/check.h"
#include "world/calls/inter.h"
#include "world/calls/making.h"
#include "world/handles/groups.h"
#include "world/native/native.h"

#include <stdlib.h>

EXPORT int MPI_Comm_size(MPI_Comm comm, int *size)
{
    const struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Comm_size, comm, size);
    NEEDS(on, size);
    *size = on->size;
    return MPI_SUCCESS;
}
BOTH(Comm_size);

EXPORT int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    const struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Comm_rank, comm, rank);
    NEEDS(on, rank);
    *rank = on->rank;
    return MPI_SUCCESS;
}
BOTH(Comm_rank);

/* Compares two lists of `size` numbers: MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL. */
static int compare(int size, const int32_t *a, const int32_t *b)
{
    int is_same = 1;
    for (int i = 0; i < size; i++) {
        int k = 0;
        while (k < size && b[k] != a[i])
            k++;
        if (k == size)
            return MPI_UNEQUAL;
        is_same = is_same && a[i] == b[i];
    }
    return is_same ? MPI_CONGRUENT : MPI_SIMILAR;
}

EXPORT int MPI_Comm_compare(MPI_Comm left, MPI_Comm right, int *result)
{
    const struct comm *a = comm_find(left), *b = comm_find(right);
    if ((!a && !b) || left == handle.comm_null || right == handle.comm_null)
        return PASS(Comm_compare, left, right, result);
    NEEDS(a ? a : b, result);
    *result = MPI_UNEQUAL;
    if (!a || !b || a->size != b->size || a->peers != b->peers || !a->local != !b->local)
        return MPI_SUCCESS;
    int local = compare(a->size, a->numbers, b->numbers);
    int remote = compare(a->peers, a->peer_numbers, b->peer_numbers);
    if (a == b)
        *result = MPI_IDENT;
    else if (local == MPI_UNEQUAL || remote == MPI_UNEQUAL)
        *result = MPI_UNEQUAL;
    else
        *result = local == remote ? local : MPI_SIMILAR;
    return MPI_SUCCESS;
}
BOTH(Comm_compare);

EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
    struct comm *on = ours.is_on && comm ? comm_find(*comm) : NULL;
    if (!on || *comm == handle.comm_world)
        return PASS(Comm_free, comm);
    *comm = handle.comm_null;
    return comm_free(on);
}
BOTH(Comm_free);

/* Pending messages continue by themselves, so it is enough that all ranks have arrived here. */
EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
    struct comm *on = ours.is_on && comm ? comm_find(*comm) : NULL;
    if (!on) {
        int status = ours.is_on && comm && *comm != handle.comm_null ? native_meet(*comm) : MPI_SUCCESS;
        return TRY(status, PASS(Comm_disconnect, comm));
    }
    int status = comm_error(on, basic_barrier(on->hidden));
    return status == MPI_SUCCESS ? MPI_Comm_free(comm) : status;
}
BOTH(Comm_disconnect);

/* The duplicate gets the number that rank 0 sends. `native` is the error code of the site's MPI for its
 * part. */
static int record_duplicate(struct comm *on, int native, MPI_Comm *made)
{
    if (on->local) {
        TRY(native, inter_duplicate(on, *made));
        return comm_error(on, native);
    }
    struct says *all = malloc((size_t)on->size * sizeof *all);
    if (!all)
        return comm_error(on, MPI_ERR_NO_MEM);
    if (native != MPI_SUCCESS)
        *made = handle.comm_null;
    int status = making_exchange(on, 0, 0, native, all);
    TRY(status, making_record(*made, all, NULL, on->size, on->numbers));
    making_end(status, all[on->rank].slot, made);
    free(all);
    if (status == MPI_SUCCESS) {
        comm_find(*made)->topology = on->topology;
        topology_hold(on->topology);
    }
    /* For its own errors the site's MPI has already called the error handler. */
    return native != MPI_SUCCESS ? native : comm_error(on, status);
}

/* Waits for the communicator's ranks at this site, before a native call that blocks. */
static int meet(struct comm *on, MPI_Comm comm)
{
    if (on)
        return making_meet(on);
    return ours.is_on && comm != handle.comm_null ? native_meet(comm) : MPI_SUCCESS;
}

EXPORT int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (on)
        NEEDS(on, made);
    int status = meet(on, comm);
    TRY(status, PASS(Comm_dup, comm, made));
    return on ? record_duplicate(on, status, made) : status;
}
BOTH(Comm_dup);

EXPORT int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    static int (*own)(MPI_Comm, MPI_Info, MPI_Comm *);
    if (!own)
        own = (int (*)(MPI_Comm, MPI_Info, MPI_Comm *))mpi_calls_find("Comm_dup_with_info");
    if (on)
        NEEDS(on, made);
    int status = meet(on, comm);
    TRY(status, own ? own(comm, info, made) : NO_MPI);
    return on ? record_duplicate(on, status, made) : status;
}
BOTH(Comm_dup_with_info);

EXPORT int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on) {
        int status = meet(NULL, comm);
        return TRY(status, PASS(Comm_split, comm, color, key, made));
    }
    NEEDS(on, made);
    if (color < 0 && color != MPI_UNDEFINED)
        return comm_error(on, MPI_ERR_ARG);
    int (*split)(struct comm *, int, int, MPI_Comm *) = on->local ? inter_split : making_split;
    return comm_error(on, split(on, color < 0 ? -1 : color, key, made));
}
BOTH(Comm_split);

/* The parts for MPI_COMM_TYPE_SHARED and kinds of hardware lie within a site, and so does a part of an
 * intercommunicator that has processes of both groups. */
EXPORT int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (on)
        NEEDS(on, made);
    if (on && on->local && !on->here) {
        *made = handle.comm_null;
        return MPI_SUCCESS;
    }
    int status = meet(on, comm);
    return TRY(status, PASS(Comm_split_type, comm, type, key, info, made));
}
BOTH(Comm_split_type);

/* Each process makes the native part for its own `group`: the group's members among the parent's processes at
 * this site. `ranks` has room for all. */
static int create(struct comm *on, struct says *all, int *ranks, int size, const int32_t *numbers,
                  MPI_Comm *made)
{
    MPI_Group here = handle.group_null;
    int status = making_ranks(on, size, numbers, ranks), is_mine = 0;
    for (int i = 0; i < size; i++)
        is_mine = is_mine || numbers[i] == (int32_t)ours.world.me;
    TRY(status, making_group(on, size, ranks, &here));
    TRY(status, making_meet(on));
    TRY(status, real.Comm_create(on->handle, here, made));
    if (here != handle.group_null && here != handle.group_empty)
        real.Group_free(&here);
    status = making_exchange(on, 0, 0, status, all);
    if (is_mine)
        TRY(status, making_record(*made, all, ranks, size, numbers));
    return making_end(status, all[on->rank].slot, made);
}

/* Splits both groups: each side takes the members of the group that it names, in that group's order. Frees
 * the list. */
static int create_inter(struct comm *on, int size, int32_t *numbers, MPI_Comm *made)
{
    int place = 0;
    while (numbers && place < size && numbers[place] != (int32_t)ours.world.me)
        place++;
    int status = numbers ? inter_split(on, place < size ? 0 : -1, place, made) : MPI_ERR_NO_MEM;
    free(numbers);
    return status;
}

EXPORT int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on) {
        int status = meet(NULL, comm);
        return TRY(status, PASS(Comm_create, comm, group, made));
    }
    int size;
    NEEDS(on, made);
    if (group == handle.group_null)
        return comm_error(on, MPI_ERR_GROUP);
    int32_t *numbers = group_list(group, &size);
    if (on->local)
        return comm_error(on, create_inter(on, size, numbers, made));
    struct says *all = malloc((size_t)on->size * sizeof *all);
    int *ranks = malloc((size_t)size * sizeof *ranks + 1);
    *made = handle.comm_null;
    int status = all && ranks && numbers ? create(on, all, ranks, size, numbers, made) : MPI_ERR_NO_MEM;
    free(all);
    free(ranks);
    free(numbers);
    return comm_error(on, status);
}
BOTH(Comm_create);

EXPORT int MPI_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag)
{
    static int tag_ub;
    if (!ours.is_on || keyval != MPI_TAG_UB || comm == handle.comm_null)
        return PASS(Comm_get_attr, comm, keyval, value, flag);
    if (!value || !flag)
        return PASS(Comm_get_attr, comm, keyval, value, flag);
    tag_ub = (int)ours.world.tag_ub;
    *(void **)value = &tag_ub;
    *flag = 1;
    return MPI_SUCCESS;
}
BOTH(Comm_get_attr);

/* The older name of MPI_Comm_get_attr. */
EXPORT int MPI_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag)
{
    return MPI_Comm_get_attr(comm, keyval, value, flag);
}
EXPORT int PMPI_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag)
{
    return MPI_Comm_get_attr(comm, keyval, value, flag);
}
