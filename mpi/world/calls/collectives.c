/* Collective operations that move data: the MPI's own within a site, those of basic/ over sites. */
#define _GNU_SOURCE
#include "world/basic/basic.h"
#include "world/calls/collective.h"

static int lay_out(const struct part *part, struct blocks *blocks)
{
    if (part->types)
        return blocks_typed(blocks, part->buffer, part->counts, part->starts, part->types);
    if (part->counts)
        return blocks_listed(blocks, part->buffer, part->counts, part->starts, part->type);
    return blocks_even(blocks, part->buffer, part->count, part->type);
}

/* The data is in the buffer of the other part. The same for all forms of a part. */
static const struct part in_place = {.buffer = MPI_IN_PLACE};

static struct part even(const void *buffer, int count, MPI_Datatype type)
{
    if (buffer == MPI_IN_PLACE)
        return in_place;
    return (struct part){.buffer = buffer, .count = count, .type = type};
}

static struct part listed(const struct comm *on, const void *buffer, const int *counts, const int *starts,
                          MPI_Datatype type)
{
    if (buffer == MPI_IN_PLACE)
        return in_place;
    return (struct part){
        .buffer = buffer, .counts = counts, .starts = starts, .type = type, .entries = on->peers};
}

static struct part typed(const struct comm *on, const void *buffer, const int *counts, const int *starts,
                         const MPI_Datatype *types)
{
    if (buffer == MPI_IN_PLACE)
        return in_place;
    return (struct part){
        .buffer = buffer, .counts = counts, .starts = starts, .types = types, .entries = on->peers};
}

/* The error for arguments that the MPI below would refuse. The arrays of operations with v or w in their
 * names are checked as far as both MPIs check them. */
static int part_error(const struct part *part)
{
    if (part->buffer == MPI_IN_PLACE)
        return MPI_SUCCESS;
    if (part->entries &&
        (!part->counts || !part->starts || (part->type == handle.datatype_null && !part->types)))
        return part->counts && part->starts ? MPI_ERR_TYPE : MPI_ERR_ARG;
    for (int i = 0; i < part->entries; i++)
        if (part->counts[i] < 0)
            return MPI_ERR_COUNT;
    if (part->count < 0)
        return MPI_ERR_COUNT;
    return !part->entries && part->type == handle.datatype_null ? MPI_ERR_TYPE : MPI_SUCCESS;
}

/* Checks the parts that are significant at this rank. Returns the error with which it has called the
 * communicator's error handler. */
static int parts_error(const struct collective *all, int has_out, int has_in)
{
    int status = has_out ? part_error(&all->out) : MPI_SUCCESS;
    if (status == MPI_SUCCESS && has_in)
        status = part_error(&all->in);
    return comm_error(all->on, status);
}

static int run_barrier(const struct collective *all) { return basic_barrier(all->on->hidden); }

static int prepare_Barrier(struct collective *all, PARAMETERS(Barrier))
{
    (void)comm;
    all->run = run_barrier;
    return MPI_SUCCESS;
}
FORMS(Barrier, barrier, return NATIVE(Barrier, Ibarrier, comm), return PASS(Ibarrier, comm, request));

static int run_bcast(const struct collective *all)
{
    return basic_bcast(all->on->hidden, (void *)all->in.buffer, all->in.count, all->in.type, all->root);
}

static int prepare_Bcast(struct collective *all, PARAMETERS(Bcast))
{
    (void)comm;
    all->run = run_bcast;
    all->root = root;
    int status = check_root(all->on, root);
    if (status != MPI_SUCCESS || root == MPI_PROC_NULL)
        return status;
    all->in = even(buffer, count, type);
    return parts_error(all, 0, 1);
}
COLLECTIVE(Bcast, bcast);

static int run_gather(const struct collective *all)
{
    struct blocks into = {0};
    const struct part *out = &all->out;
    int status = MPI_SUCCESS;
    if (collective_is_root(all->on, all->root))
        status = lay_out(&all->in, &into);
    TRY(status, basic_gather(all->on->hidden, out->buffer, out->count, out->type, &into, all->root));
    return status;
}

/* The receive part is significant only at the root. */
static int gathers(struct collective *all, int root, struct part out, struct part in)
{
    all->run = run_gather;
    all->root = root;
    if (collective_has_part(all->on, root))
        all->out = out;
    if (collective_is_root(all->on, root))
        all->in = in;
    int status = check_root(all->on, root);
    return TRY(status,
               parts_error(all, collective_has_part(all->on, root), collective_is_root(all->on, root)));
}

static int prepare_Gather(struct collective *all, PARAMETERS(Gather))
{
    (void)comm;
    return gathers(all, root, even(from, count, type), even(into, into_count, into_type));
}
COLLECTIVE(Gather, gather);

static int prepare_Gatherv(struct collective *all, PARAMETERS(Gatherv))
{
    (void)comm;
    return gathers(all, root, even(from, count, type),
                   listed(all->on, into, into_counts, into_displs, into_type));
}
COLLECTIVE(Gatherv, gatherv);

static int run_scatter(const struct collective *all)
{
    struct blocks from = {0};
    const struct part *in = &all->in;
    int status = MPI_SUCCESS;
    if (collective_is_root(all->on, all->root))
        status = lay_out(&all->out, &from);
    TRY(status, basic_scatter(all->on->hidden, &from, (void *)in->buffer, in->count, in->type, all->root));
    return status;
}

static int scatters(struct collective *all, int root, struct part out, struct part in)
{
    all->run = run_scatter;
    all->root = root;
    if (collective_is_root(all->on, root))
        all->out = out;
    if (collective_has_part(all->on, root))
        all->in = in;
    int status = check_root(all->on, root);
    return TRY(status,
               parts_error(all, collective_is_root(all->on, root), collective_has_part(all->on, root)));
}

static int prepare_Scatter(struct collective *all, PARAMETERS(Scatter))
{
    (void)comm;
    return scatters(all, root, even(from, count, type), even(into, into_count, into_type));
}
COLLECTIVE(Scatter, scatter);

static int prepare_Scatterv(struct collective *all, PARAMETERS(Scatterv))
{
    (void)comm;
    return scatters(all, root, listed(all->on, from, counts, displs, type),
                    even(into, into_count, into_type));
}
COLLECTIVE(Scatterv, scatterv);

static int run_allgather(const struct collective *all)
{
    struct blocks into;
    int status = lay_out(&all->in, &into);
    TRY(status, basic_allgather(all->on->hidden, all->out.buffer, all->out.count, all->out.type, &into));
    return status;
}

static int allgathers(struct collective *all, struct part out, struct part in)
{
    all->run = run_allgather;
    all->out = out;
    all->in = in;
    return parts_error(all, 1, 1);
}

static int prepare_Allgather(struct collective *all, PARAMETERS(Allgather))
{
    (void)comm;
    return allgathers(all, even(from, count, type), even(into, into_count, into_type));
}
COLLECTIVE(Allgather, allgather);

static int prepare_Allgatherv(struct collective *all, PARAMETERS(Allgatherv))
{
    (void)comm;
    return allgathers(all, even(from, count, type),
                      listed(all->on, into, into_counts, into_displs, into_type));
}
COLLECTIVE(Allgatherv, allgatherv);

static int run_alltoall(const struct collective *all)
{
    struct blocks from, into;
    int status = lay_out(&all->out, &from);
    TRY(status, lay_out(&all->in, &into));
    TRY(status, basic_alltoall(all->on->hidden, &from, &into));
    return status;
}

static int exchanges(struct collective *all, struct part out, struct part in)
{
    all->run = run_alltoall;
    all->out = out;
    all->in = in;
    return parts_error(all, 1, 1);
}

static int prepare_Alltoall(struct collective *all, PARAMETERS(Alltoall))
{
    (void)comm;
    return exchanges(all, even(from, count, type), even(into, into_count, into_type));
}
COLLECTIVE(Alltoall, alltoall);

static int prepare_Alltoallv(struct collective *all, PARAMETERS(Alltoallv))
{
    (void)comm;
    return exchanges(all, listed(all->on, from, counts, displs, type),
                     listed(all->on, into, into_counts, into_displs, into_type));
}
COLLECTIVE(Alltoallv, alltoallv);

static int prepare_Alltoallw(struct collective *all, PARAMETERS(Alltoallw))
{
    (void)comm;
    return exchanges(all, typed(all->on, from, counts, displs, types),
                     typed(all->on, into, into_counts, into_displs, into_types));
}
/* With MPI_IN_PLACE, MPICH's Ialltoallw sends each peer the wrong part before version 4.2. */
COLLECTIVE_BUT(Alltoallw, alltoallw, from == MPI_IN_PLACE || native_is_inter(comm));
