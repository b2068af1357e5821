/* bottom: MPI_BOTTOM with datatypes of absolute addresses as the buffer of every operation that moves data,
 * to send from and to receive into, and of messages. */
#include "world_test.h"

enum { COUNT = 50, MOST = 16 };

static int mine[COUNT], all[COUNT * MOST], other[COUNT * MOST];
static MPI_Datatype at_mine, at_other, at_own_part;

static MPI_Datatype at(void *where, int count)
{
    MPI_Aint address;
    MPI_Datatype type;
    MPI_Get_address(where, &address);
    MPI_Type_create_hindexed(1, &count, &address, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static int value(int of, int to, int i) { return of * 10000 + to * 100 + i; }

static void fill(void)
{
    for (int i = 0; i < COUNT * size; i++)
        all[i] = value(rank, i / COUNT, i % COUNT), other[i] = -1;
    for (int i = 0; i < COUNT; i++)
        mine[i] = value(rank, 0, i);
}

static void check_mine(int of, int to)
{
    for (int i = 0; i < COUNT; i++)
        CHECK(mine[i] == value(of, to, i));
}

static void check_parts(const int *parts, int to)
{
    for (int i = 0; i < COUNT * size; i++)
        CHECK(parts[i] == value(i / COUNT, to, i % COUNT));
}

static void wait_for(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

static void bcasts(int root)
{
    MPI_Request request;
    fill();
    MPI_Bcast(MPI_BOTTOM, 1, at_mine, root, MPI_COMM_WORLD);
    check_mine(root, 0);
    fill();
    MPI_Ibcast(MPI_BOTTOM, 1, at_mine, root, MPI_COMM_WORLD, &request);
    wait_for(&request);
    check_mine(root, 0);
}

static void rooted(int root)
{
    MPI_Request request;
    int counts[MOST], starts[MOST];
    for (int i = 0; i < size; i++)
        counts[i] = COUNT, starts[i] = i * COUNT;
    fill();
    MPI_Gather(MPI_BOTTOM, 1, at_mine, other, COUNT, MPI_INT, root, MPI_COMM_WORLD);
    if (rank == root)
        check_parts(other, 0);
    fill();
    MPI_Igather(MPI_BOTTOM, 1, at_mine, other, COUNT, MPI_INT, root, MPI_COMM_WORLD, &request);
    wait_for(&request);
    if (rank == root)
        check_parts(other, 0);
    fill();
    MPI_Gatherv(MPI_BOTTOM, 1, at_mine, other, counts, starts, MPI_INT, root, MPI_COMM_WORLD);
    if (rank == root)
        check_parts(other, 0);
    fill();
    MPI_Scatter(all, COUNT, MPI_INT, MPI_BOTTOM, 1, at_mine, root, MPI_COMM_WORLD);
    check_mine(root, rank);
    fill();
    MPI_Scatterv(all, counts, starts, MPI_INT, MPI_BOTTOM, 1, at_mine, root, MPI_COMM_WORLD);
    check_mine(root, rank);
}

static void of_all(void)
{
    MPI_Request request;
    int counts[MOST], starts[MOST], ones[MOST], zeros[MOST] = {0};
    MPI_Datatype from[MOST], into[MOST];
    for (int i = 0; i < size; i++) {
        counts[i] = COUNT, starts[i] = i * COUNT, ones[i] = 1;
        from[i] = at(all + i * COUNT, COUNT), into[i] = at(other + i * COUNT, COUNT);
    }
    fill();
    MPI_Allgather(MPI_BOTTOM, 1, at_mine, other, COUNT, MPI_INT, MPI_COMM_WORLD);
    check_parts(other, 0);
    fill();
    MPI_Iallgather(MPI_BOTTOM, 1, at_mine, other, COUNT, MPI_INT, MPI_COMM_WORLD, &request);
    wait_for(&request);
    check_parts(other, 0);
    fill();
    MPI_Allgatherv(MPI_BOTTOM, 1, at_mine, other, counts, starts, MPI_INT, MPI_COMM_WORLD);
    check_parts(other, 0);
    fill();
    MPI_Alltoallw(MPI_BOTTOM, ones, zeros, from, MPI_BOTTOM, ones, zeros, into, MPI_COMM_WORLD);
    check_parts(other, rank);
    fill();
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, MPI_BOTTOM, ones, zeros, from, MPI_COMM_WORLD);
    check_parts(all, rank);
    fill();
    MPI_Ialltoallw(MPI_BOTTOM, ones, zeros, from, MPI_BOTTOM, ones, zeros, into, MPI_COMM_WORLD, &request);
    wait_for(&request);
    check_parts(other, rank);
    for (int i = 0; i < size; i++)
        MPI_Type_free(&from[i]), MPI_Type_free(&into[i]);
}

/* A type whose elements follow each other by the extent of a part, from MPI_BOTTOM on. */
static void spaced(void)
{
    MPI_Datatype from, into;
    MPI_Aint extent = COUNT * sizeof(int);
    MPI_Type_create_resized(at_own_part, 0, extent, &from);
    MPI_Type_commit(&from);
    MPI_Type_create_resized(at_other, 0, extent, &into);
    MPI_Type_commit(&into);
    fill();
    MPI_Alltoall(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, into, MPI_COMM_WORLD);
    check_parts(other, rank);
    fill();
    MPI_Allgather(mine, COUNT, MPI_INT, MPI_BOTTOM, 1, into, MPI_COMM_WORLD);
    check_parts(other, 0);
    fill();
    MPI_Allgather(MPI_IN_PLACE, 1, into, MPI_BOTTOM, 1, from, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT * size; i++)
        CHECK(all[i] == value(i / COUNT, i / COUNT, i % COUNT));
    for (int root = 0; root < size; root++) {
        fill();
        MPI_Gather(mine, COUNT, MPI_INT, MPI_BOTTOM, 1, into, root, MPI_COMM_WORLD);
        if (rank == root)
            check_parts(other, 0);
        fill();
        MPI_Scatter(MPI_BOTTOM, 1, from, mine, COUNT, MPI_INT, root, MPI_COMM_WORLD);
        check_mine(root, rank);
    }
    MPI_Type_free(&from);
    MPI_Type_free(&into);
}

static void messages(void)
{
    MPI_Request requests[2];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    fill();
    MPI_Irecv(MPI_BOTTOM, 1, at_other, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(MPI_BOTTOM, 1, at_mine, right, 1, MPI_COMM_WORLD, &requests[1]);
    wait_for(&requests[0]), wait_for(&requests[1]);
    for (int i = 0; i < COUNT; i++)
        CHECK(other[i] == value(left, 0, i));
    fill();
    MPI_Sendrecv_replace(MPI_BOTTOM, 1, at_mine, right, 2, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_mine(left, 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    at_mine = at(mine, COUNT);
    at_other = at(other, COUNT);
    at_own_part = at(all, COUNT);
    for (int root = 0; root < size; root++)
        bcasts(root), rooted(root);
    of_all();
    spaced();
    messages();
    MPI_Type_free(&at_mine), MPI_Type_free(&at_other), MPI_Type_free(&at_own_part);
    return end("bottom");
}
