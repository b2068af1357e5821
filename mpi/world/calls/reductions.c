/* Reductions: the MPI's own within a site, those of basic/ over sites. */
#define _GNU_SOURCE
#include "world/basic/basic.h"
#include "world/calls/collective.h"
#include "world/native/unlike.h"

#include <stdio.h>

/* The MPI below knows which operations a type supports: it refuses an unsupported one even for 0 elements. */
static int check_operation(MPI_Datatype type, MPI_Op op)
{
    static int is_told;
    char in[1] = {0}, into[1] = {0};
    if (!unlike_forbids(type, op))
        return real.Reduce_local(in, into, 0, type, op);
    if (!is_told)
        fprintf(
            stderr,
            "causeway world: rank %u: MPI_MAX and MPI_MIN of MPI_CHAR do not work over these sites: char has a "
            "sign at some of them and none at others; use MPI_SIGNED_CHAR or MPI_UNSIGNED_CHAR\n",
            ours.world.me);
    is_told = 1;
    return MPI_ERR_OP;
}

/* Fills in a call; `in` is significant if this rank gets the result. */
static int prepare(struct collective *all, int (*run)(const struct collective *), const void *send,
                   void *receive, int count, MPI_Datatype type, MPI_Op op)
{
    int status = MPI_SUCCESS;
    if (count < 0)
        status = MPI_ERR_COUNT;
    else if (type == handle.datatype_null)
        status = MPI_ERR_TYPE;
    else if (op == handle.op_null)
        status = MPI_ERR_OP;
    else
        status = check_operation(type, op);
    all->run = run;
    all->op = op;
    all->out = (struct part){.buffer = send, .count = count, .type = type};
    all->in = (struct part){.buffer = receive, .count = count, .type = type};
    return comm_error(all->on, status);
}

static int run_reduce(const struct collective *all)
{
    return basic_reduce(all->on->hidden, all->out.buffer, (void *)all->in.buffer, all->in.count, all->in.type,
                        all->op, all->root);
}

static int prepare_Reduce(struct collective *all, PARAMETERS(Reduce))
{
    (void)comm;
    int status = check_root(all->on, root);
    all->root = root;
    all->run = run_reduce;
    if (status == MPI_SUCCESS && root != MPI_PROC_NULL)
        status = prepare(all, run_reduce, from, into, count, type, op);
    return status;
}
COLLECTIVE(Reduce, reduce);

static int run_allreduce(const struct collective *all)
{
    return basic_allreduce(all->on->hidden, all->out.buffer, (void *)all->in.buffer, all->in.count,
                           all->in.type, all->op);
}

static int prepare_Allreduce(struct collective *all, PARAMETERS(Allreduce))
{
    (void)comm;
    return prepare(all, run_allreduce, from, into, count, type, op);
}
COLLECTIVE(Allreduce, allreduce);

static int run_reduce_scatter(const struct collective *all)
{
    const struct part *in = &all->in;
    return basic_reduce_scatter(all->on->hidden, all->out.buffer, (void *)in->buffer, in->counts, in->count,
                                in->type, all->op);
}

static int prepare_Reduce_scatter(struct collective *all, PARAMETERS(Reduce_scatter))
{
    (void)comm;
    int status = prepare(all, run_reduce_scatter, from, into, 0, type, op);
    for (int i = 0; i < all->on->size && status == MPI_SUCCESS; i++)
        if (!counts || counts[i] < 0)
            status = comm_error(all->on, counts ? MPI_ERR_COUNT : MPI_ERR_ARG);
    all->in.counts = counts;
    all->in.entries = all->on->size;
    return status;
}
COLLECTIVE(Reduce_scatter, reduce_scatter);

static int prepare_Reduce_scatter_block(struct collective *all, PARAMETERS(Reduce_scatter_block))
{
    (void)comm;
    return prepare(all, run_reduce_scatter, from, into, count, type, op);
}
COLLECTIVE(Reduce_scatter_block, reduce_scatter_block);

/* Intercommunicators have no scans. */
static int prepare_in_order(struct collective *all, int (*run)(const struct collective *), const void *send,
                            void *receive, int count, MPI_Datatype type, MPI_Op op)
{
    int status = comm_error(all->on, all->on->local ? MPI_ERR_COMM : MPI_SUCCESS);
    return TRY(status, prepare(all, run, send, receive, count, type, op));
}

static int run_scan(const struct collective *all)
{
    return basic_scan(all->on->hidden, all->out.buffer, (void *)all->in.buffer, all->in.count, all->in.type,
                      all->op);
}

static int prepare_Scan(struct collective *all, PARAMETERS(Scan))
{
    (void)comm;
    return prepare_in_order(all, run_scan, from, into, count, type, op);
}
COLLECTIVE(Scan, scan);

static int run_exscan(const struct collective *all)
{
    return basic_exscan(all->on->hidden, all->out.buffer, (void *)all->in.buffer, all->in.count, all->in.type,
                        all->op);
}

static int prepare_Exscan(struct collective *all, PARAMETERS(Exscan))
{
    (void)comm;
    return prepare_in_order(all, run_exscan, from, into, count, type, op);
}
COLLECTIVE(Exscan, exscan);
