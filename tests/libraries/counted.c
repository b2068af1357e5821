/* Sends what messages.sh expects to be counted: on four ranks, each way of sending, from each rank. With an
 * argument rank 1 aborts in place of MPI_Finalize. */
#include <mpi.h>

#include <stdio.h>

static int rank, ranks, next, before;
static char out[4096], in[4096];

/* Each of the calls sends to the next rank, with another size. */
static void to_the_next(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(in, sizeof in, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 10, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Irecv(in, sizeof in, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(out, 11, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Irecv(in, sizeof in, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(out, 12, MPI_INT, next, 0, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 3, MPI_DOUBLE, next, 0, in, 3, MPI_DOUBLE, before, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 4, MPI_DOUBLE, next, 0, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Request received;
    MPI_Recv_init(in, sizeof in, MPI_BYTE, before, 0, MPI_COMM_WORLD, &received);
    MPI_Send_init(out, 100, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 5; i++) {
        MPI_Start(&received);
        if (i % 2)
            MPI_Start(&requests[1]);
        else
            MPI_Startall(1, &requests[1]);
        MPI_Wait(&received, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&received);
    MPI_Request_free(&requests[1]);
}

/* Even ranks and odd ones: the lower of each sends to the higher, and each even one to its odd neighbour. */
static void in_other_communicators(void)
{
    MPI_Comm half, halves;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank < 2)
        MPI_Ssend(out, 7, MPI_DOUBLE, 1, 0, half);
    else
        MPI_Recv(in, 7, MPI_DOUBLE, 0, 0, half, MPI_STATUS_IGNORE);
    double sums[3] = {1, 2, 3};
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 5, &halves);
    if (rank % 2)
        MPI_Recv(in, 1, MPI_INT, rank / 2, 0, halves, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, 1, MPI_INT, rank / 2, 0, halves);
    /* The odd ranks give to rank 0. What the even ones say of what they give does not count. */
    if (rank == 0)
        MPI_Gather(NULL, 5, MPI_DATATYPE_NULL, in, 5, MPI_INT, MPI_ROOT, halves);
    else if (rank == 2)
        MPI_Gather(NULL, 5, MPI_DATATYPE_NULL, NULL, 5, MPI_DATATYPE_NULL, MPI_PROC_NULL, halves);
    else
        MPI_Gather(out, 5, MPI_INT, NULL, 0, MPI_INT, 0, halves);
    MPI_Comm_free(&halves);
    MPI_Comm_free(&half);
}

static void by_all(void)
{
    int counts[4], at[4], rooms[4];
    for (int i = 0; i < ranks; i++) {
        counts[i] = i + 1;
        rooms[i] = rank + 1;
        at[i] = 16 * i;
    }
    MPI_Bcast(out, 16, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Bcast(out, 16, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Alltoallv(out, counts, at, MPI_INT, in, rooms, at, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    if (rank == 3)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, in, 5, MPI_INT, 3, MPI_COMM_WORLD);
    else
        MPI_Gather(out, 5, MPI_INT, NULL, 0, MPI_INT, 3, MPI_COMM_WORLD);
    MPI_Scatter(rank ? NULL : out, 6, MPI_INT, in, 6, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, at, MPI_INT, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Iallgather(out, 9, MPI_BYTE, in, 9, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < ranks; i++)
        counts[i] = 2;
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A ring as a topology: each rank gives to two others. */
static void by_neighbours(void)
{
    MPI_Comm ring;
    int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
    MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void one_sided(void)
{
    MPI_Win win;
    MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(out, 5, MPI_INT, next, 0, 5, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Get(out, 6, MPI_INT, before, 0, 6, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 4) {
        fprintf(stderr, "counted: four ranks are wanted\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    next = (rank + 1) % ranks;
    before = (rank + ranks - 1) % ranks;
    to_the_next();
    in_other_communicators();
    by_all();
    by_neighbours();
    one_sided();
    if (argc > 1 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (argc > 1)
        MPI_Recv(in, 1, MPI_BYTE, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
