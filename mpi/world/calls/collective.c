#define _GNU_SOURCE
#include "world/calls/collective.h"

#include "world/calls/persistent.h"
#include "world/native/data.h"
#include "world/native/ops.h"
#include "world/native/task.h"

#include <stdlib.h>
#include <string.h>

int collective_is_root(const struct comm *on, int root)
{
    return on->local ? root == MPI_ROOT : root == on->rank;
}

int collective_has_part(const struct comm *on, int root) { return !on->local || root >= 0; }

int collective_do(const struct collective *all) { return comm_error(all->on, all->run(all)); }

/* A copy of a call, followed by the memory of its arrays. */
struct copy {
    struct collective all;
    /* Our duplicates of datatypes, because the program may free its own. */
    int types;
    MPI_Datatype *owned;
};

static size_t bytes_of(const struct part *part)
{
    size_t entries = (size_t)part->entries;
    return entries * ((part->displs ? sizeof *part->displs : 0) + (part->types ? sizeof *part->types : 0) +
                      (part->counts ? sizeof *part->counts : 0) + (part->starts ? sizeof *part->starts : 0));
}

/* Copies an array into the room, and advances that. */
static const void *put(char **room, const void *array, size_t bytes)
{
    if (!array)
        return NULL;
    char *at = *room;
    memcpy(at, array, bytes);
    *room += bytes;
    return at;
}

static MPI_Datatype keep_type(struct copy *copy, MPI_Datatype type)
{
    if (type == handle.datatype_null || data_is_named(type) ||
        real.Type_dup(type, &copy->owned[copy->types]) != MPI_SUCCESS)
        return type;
    return copy->owned[copy->types++];
}

static void copy_part(struct copy *copy, struct part *part, char **room)
{
    size_t entries = (size_t)part->entries;
    if (!part->type && !part->types)
        return;
    *room += -(uintptr_t)*room % sizeof *part->displs;
    part->displs = put(room, part->displs, entries * sizeof *part->displs);
    const MPI_Datatype *types = part->types;
    MPI_Datatype *kept = (MPI_Datatype *)put(room, types, entries * sizeof *types);
    for (size_t i = 0; types && i < entries; i++)
        kept[i] = keep_type(copy, types[i]);
    part->types = kept;
    if (!types)
        part->type = keep_type(copy, part->type);
    part->counts = put(room, part->counts, entries * sizeof *part->counts);
    part->starts = put(room, part->starts, entries * sizeof *part->starts);
}

static struct copy *copy_of(const struct collective *all)
{
    size_t most_types = (size_t)all->out.entries + (size_t)all->in.entries + 2;
    size_t types = most_types * sizeof(MPI_Datatype);
    /* Arrays with the largest elements come first, so that each array is aligned. */
    struct copy *copy = malloc(sizeof *copy + types + bytes_of(&all->out) + bytes_of(&all->in) + 16);
    if (!copy)
        return NULL;
    if (all->op && op_hold(all->op) != MPI_SUCCESS) {
        free(copy);
        return NULL;
    }
    char *room = (char *)(copy + 1) + types;
    *copy = (struct copy){.all = *all, .owned = (MPI_Datatype *)(copy + 1)};
    copy_part(copy, &copy->all.out, &room);
    copy_part(copy, &copy->all.in, &room);
    return copy;
}

void collective_free(void *of)
{
    struct copy *copy = of;
    for (int i = 0; i < copy->types; i++)
        real.Type_free(&copy->owned[i]);
    if (copy->all.op)
        op_release(copy->all.op);
    free(copy);
}

EXPORT int MPI_Op_free(MPI_Op *op)
{
    if (!ours.is_on || !op || !op_puts_off(*op))
        return PASS(Op_free, op);
    *op = handle.op_null;
    return MPI_SUCCESS;
}
BOTH(Op_free);

static int run(void *of)
{
    struct copy *copy = of;
    return copy->all.run(&copy->all);
}

int collective_begin(const struct collective *all, MPI_Request *request)
{
    struct copy *copy = copy_of(all);
    struct work work = {run, collective_free, copy};
    int status = copy ? task_start(all->on, &work, request) : MPI_ERR_NO_MEM;
    if (copy && status != MPI_SUCCESS)
        collective_free(copy);
    return comm_error(all->on, status);
}

static int start(const struct persistent *persistent, MPI_Request *request)
{
    return collective_begin(&((struct copy *)persistent->collective)->all, request);
}

int collective_keep(const struct collective *all, MPI_Request *request)
{
    struct copy *copy = copy_of(all);
    if (!copy)
        return comm_error(all->on, MPI_ERR_NO_MEM);
    struct persistent made = {.comm = all->on, .start = start, .type = handle.byte, .collective = copy};
    int status = persistent_make(made, request);
    if (status != MPI_SUCCESS)
        collective_free(copy);
    return status;
}
