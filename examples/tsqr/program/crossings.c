#define _GNU_SOURCE
#include "crossings.h"

#include "src/topology.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

static int *site, sites, rank, ranks;
static int64_t count;

int crossings_open(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *of_ranks = calloc((size_t)ranks, sizeof *of_ranks);
    sites = of_ranks ? tsqr_topology_read(MPI_COMM_WORLD, of_ranks) : -1;
    if (sites > 0)
        site = of_ranks;
    return sites;
}

int64_t crossings_count(void) { return count; }

/* A grid of P x 1 has communicators of all ranks in order, and of single ones. */
static int is_whole(MPI_Comm comm)
{
    int size = 0;
    if (site)
        MPI_Comm_size(comm, &size);
    return size == ranks;
}

static void note_send(int to, MPI_Comm comm)
{
    if (is_whole(comm) && to >= 0 && to < ranks)
        count += site[to] != site[rank];
}

static void note_collective(int root, int ways, MPI_Comm comm)
{
    if (is_whole(comm) && rank == root)
        count += (int64_t)ways * (sites - 1);
}

/* The definition of a function after ours, which any MPI program has. */
static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

/* PASSED is a function of the MPI with its parameters and arguments in brackets; NOTE counts it. */
#define PASSED(name, parameters, arguments, note) \
    int name parameters                           \
    {                                             \
        static int(*after) parameters;            \
        if (!after)                               \
            *(void **)&after = next(#name);       \
        note;                                     \
        return after arguments;                   \
    }

#define SEND_PARAMETERS (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)

PASSED(MPI_Send, SEND_PARAMETERS, (data, n, type, to, tag, comm), note_send(to, comm))
PASSED(MPI_Ssend, SEND_PARAMETERS, (data, n, type, to, tag, comm), note_send(to, comm))
PASSED(MPI_Rsend, SEND_PARAMETERS, (data, n, type, to, tag, comm), note_send(to, comm))
PASSED(MPI_Isend,
       (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
       (data, n, type, to, tag, comm, request), note_send(to, comm))
PASSED(MPI_Sendrecv,
       (const void *data, int n, MPI_Datatype type, int to, int tag, void *into, int most, MPI_Datatype kind,
        int from, int other_tag, MPI_Comm comm, MPI_Status *status),
       (data, n, type, to, tag, into, most, kind, from, other_tag, comm, status), note_send(to, comm))
PASSED(MPI_Bcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm),
       (data, n, type, root, comm), note_collective(root, 1, comm))
PASSED(MPI_Reduce,
       (const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
       (data, into, n, type, op, root, comm), note_collective(root, 1, comm))
PASSED(MPI_Allreduce, (const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
       (data, into, n, type, op, comm), note_collective(0, 2, comm))
