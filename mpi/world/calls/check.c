#include "world/calls/check.h"

static int check_data(int count, MPI_Datatype type)
{
    if (count < 0)
        return MPI_ERR_COUNT;
    return type == handle.datatype_null ? MPI_ERR_TYPE : MPI_SUCCESS;
}

static int is_rank(const struct comm *comm, int rank)
{
    return rank == MPI_PROC_NULL || (rank >= 0 && rank < comm->peers);
}

int check_send(const struct comm *comm, int count, MPI_Datatype type, int to, int tag)
{
    int status = check_data(count, type);
    if (status == MPI_SUCCESS && !is_rank(comm, to))
        status = MPI_ERR_RANK;
    if (status == MPI_SUCCESS && (tag < 0 || (uint32_t)tag > ours.world.tag_ub))
        status = MPI_ERR_TAG;
    return comm_error(comm, status);
}

int check_receive(const struct comm *comm, int count, MPI_Datatype type, int from, int tag)
{
    int status = check_data(count, type);
    if (status == MPI_SUCCESS && from != MPI_ANY_SOURCE && !is_rank(comm, from))
        status = MPI_ERR_RANK;
    if (status == MPI_SUCCESS && tag != MPI_ANY_TAG && (tag < 0 || (uint32_t)tag > ours.world.tag_ub))
        status = MPI_ERR_TAG;
    return comm_error(comm, status);
}

int check_root(const struct comm *comm, int root)
{
    int is_right =
        (root >= 0 && root < comm->peers) || (comm->local && (root == MPI_ROOT || root == MPI_PROC_NULL));
    return comm_error(comm, is_right ? MPI_SUCCESS : MPI_ERR_ROOT);
}
