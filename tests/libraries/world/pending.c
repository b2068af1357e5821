/* pending: collective operations and duplicates that do not wait, over sites: many at a time, in mixtures
 * with messages, completed in any order by every call that completes. */
#include "world_test.h"

enum { MANY = 12, LONG = 40000 };

static int sum_below(int n) { return n * (n - 1) / 2; }

/* One operation of a round: what goes in and what has to come out. */
struct pending {
    int kind, root, length, *out, *in;
};

/* Begins the operation `kind` of a round; the same at all ranks. */
static void start(struct pending *p, int number, MPI_Comm comm, MPI_Request *request)
{
    int n = p->length;
    for (int i = 0; i < n * size; i++) {
        p->out[i] = rank * 1000 + number;
        p->in[i] = -1;
    }
    switch (p->kind) {
    case 0:
        MPI_Ibarrier(comm, request);
        break;
    case 1:
        if (rank == p->root)
            memcpy(p->in, p->out, (size_t)n * sizeof *p->in);
        MPI_Ibcast(p->in, n, MPI_INT, p->root, comm, request);
        break;
    case 2:
        MPI_Iallreduce(p->out, p->in, n, MPI_INT, MPI_SUM, comm, request);
        break;
    case 3:
        MPI_Igather(p->out, n, MPI_INT, p->in, n, MPI_INT, p->root, comm, request);
        break;
    case 4:
        MPI_Ialltoall(p->out, n, MPI_INT, p->in, n, MPI_INT, comm, request);
        break;
    case 5:
        MPI_Iscan(p->out, p->in, n, MPI_INT, MPI_SUM, comm, request);
        break;
    case 6:
        MPI_Ireduce_scatter_block(p->out, p->in, n, MPI_INT, MPI_SUM, comm, request);
        break;
    default:
        MPI_Iallgather(p->out, n, MPI_INT, p->in, n, MPI_INT, comm, request);
    }
}

static void check(const struct pending *p, int number)
{
    int last = p->length - 1, end = p->length * size - 1, all = sum_below(size) * 1000 + number * size;
    switch (p->kind) {
    case 0:
        break;
    case 1:
        CHECK(p->in[0] == p->root * 1000 + number && p->in[last] == p->in[0]);
        break;
    case 2:
    case 6:
        CHECK(p->in[0] == all && p->in[last] == all);
        break;
    case 3:
        CHECK(rank != p->root || (p->in[0] == number && p->in[end] == (size - 1) * 1000 + number));
        break;
    case 5:
        CHECK(p->in[last] == sum_below(rank + 1) * 1000 + number * (rank + 1));
        break;
    default:
        CHECK(p->in[0] == number && p->in[end] == (size - 1) * 1000 + number);
    }
}

/* Completes all, in one of several ways. */
static void complete(int way, int count, MPI_Request requests[])
{
    int flag = 0, index, done, indices[2 * MANY];
    MPI_Status statuses[2 * MANY];
    switch (way) {
    case 0:
        MPI_Waitall(count, requests, statuses);
        return;
    case 1:
        for (int i = count - 1; i >= 0; i--)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        return;
    case 2:
        for (int i = 0; i < count; i++)
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        return;
    case 3:
        while (!flag)
            MPI_Testall(count, requests, &flag, statuses);
        return;
    default:
        for (int left = count; left > 0; left -= done)
            MPI_Waitsome(count, requests, &done, indices, statuses);
    }
}

/* A blocking operation of the same communicator comes between. */
static void rounds(MPI_Comm comm)
{
    struct pending all[MANY];
    MPI_Request requests[2 * MANY];
    int from_left = -1, left = (rank + size - 1) % size, total;
    for (int i = 0; i < MANY; i++) {
        all[i].out = malloc(LONG * (size_t)size * sizeof(int));
        all[i].in = malloc(LONG * (size_t)size * sizeof(int));
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MANY; i++) {
            all[i].kind = (int)draw(8);
            all[i].root = (int)draw((unsigned)size);
            all[i].length = draw(4) ? 1 + (int)draw(50) : LONG;
            start(&all[i], i, comm, &requests[i]);
            if (i == MANY / 2) {
                MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm);
                CHECK(total == sum_below(size));
            }
        }
        MPI_Irecv(&from_left, 1, MPI_INT, round % 2 ? left : MPI_ANY_SOURCE, 7, comm, &requests[MANY]);
        MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 7, comm, &requests[MANY + 1]);
        complete(round % 5, MANY + 2, requests);
        CHECK(from_left == left);
        for (int i = 0; i < MANY; i++)
            check(&all[i], i);
    }
    for (int i = 0; i < MANY; i++) {
        free(all[i].out);
        free(all[i].in);
    }
}

/* The operation goes on after the program has freed the datatypes, and its lists. */
static void what_it_named_is_freed_early(void)
{
    MPI_Datatype *types = malloc((size_t)size * sizeof *types);
    int *counts = malloc((size_t)size * sizeof *counts), *starts = malloc((size_t)size * sizeof *starts);
    int *out = malloc(4 * (size_t)size * sizeof *out), *in = malloc(4 * (size_t)size * sizeof *in);
    MPI_Request request;
    for (int i = 0; i < size; i++) {
        MPI_Type_vector(2, 1, 2, MPI_INT, &types[i]);
        MPI_Type_commit(&types[i]);
        counts[i] = 1;
        starts[i] = i * 4 * (int)sizeof *out;
    }
    for (int i = 0; i < 4 * size; i++) {
        out[i] = rank * 100 + i;
        in[i] = -1;
    }
    MPI_Ialltoallw(out, counts, starts, types, in, counts, starts, types, MPI_COMM_WORLD, &request);
    for (int i = 0; i < size; i++)
        MPI_Type_free(&types[i]);
    free(types);
    memset(counts, 0xff, (size_t)size * sizeof *counts);
    memset(starts, 0xff, (size_t)size * sizeof *starts);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        CHECK(in[4 * i] == i * 100 + 4 * rank && in[4 * i + 1] == -1 && in[4 * i + 2] == in[4 * i] + 2 &&
              in[4 * i + 3] == -1);
    free(counts), free(starts), free(out), free(in);
}

/* A sum over all, and a message round, both beside each other. */
static void use(MPI_Comm comm)
{
    int total = -1, from_left = -1, left = (rank + size - 1) % size;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Iallreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Irecv(&from_left, 1, MPI_INT, left, 1, comm, &requests[1]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 1, comm, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    CHECK(total == sum_below(size) && from_left == left);
}

static void duplicates(void)
{
    MPI_Comm comms[3], again;
    MPI_Request requests[4];
    int token = 0, result;
    /* Rank 0 goes on before the others have come. */
    if (rank != 0)
        MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_idup(MPI_COMM_WORLD, &comms[0], &requests[0]);
    for (int i = 1; rank == 0 && i < size; i++)
        MPI_Send(&token, 1, MPI_INT, i, 5, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    use(comms[0]);
    for (int round = 0; round < 10; round++) {
        MPI_Comm_idup(comms[0], &comms[1], &requests[0]);
        MPI_Comm_idup(MPI_COMM_WORLD, &comms[2], &requests[1]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
        complete(round % 5, 3, requests);
        MPI_Comm_compare(comms[1], comms[2], &result);
        CHECK(result == MPI_CONGRUENT);
        use(comms[1]);
        use(comms[2]);
        MPI_Comm_dup(comms[2], &again);
        use(again);
        MPI_Comm_free(&again), MPI_Comm_free(&comms[1]), MPI_Comm_free(&comms[2]);
    }
    rounds(comms[0]);
    MPI_Comm_free(&comms[0]);
}

/* The call that completes returns the error. MPICH gives errors of its own messages to MPI_COMM_WORLD. */
static void an_error_comes_with_the_completion(void)
{
    int out[2] = {1, 2}, in[2], is_ring = 1;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Status status;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_ring, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Each has room for one number of each neighbour, and two come. */
    MPI_Ineighbor_allgather(out, 2, MPI_INT, in, 1, MPI_INT, comm, &request);
    CHECK(MPI_Wait(&request, &status) != MPI_SUCCESS && request == MPI_REQUEST_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

static void greater(void *in, void *into, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        if (((int *)in)[i] > ((int *)into)[i])
            ((int *)into)[i] = ((int *)in)[i];
}

/* An operation may be freed while it is used, whatever is made after it. */
static void operations_that_are_freed(void)
{
    MPI_Op first, other;
    MPI_Status statuses[2];
    MPI_Request requests[2];
    int mine[2] = {rank, -rank}, most[2] = {-1000, -1000};
    MPI_Op_create(greater, 1, &first);
    for (int i = 0; i < 2; i++)
        MPI_Iallreduce(&mine[i], &most[i], 1, MPI_INT, first, MPI_COMM_WORLD, &requests[i]);
    MPI_Op_free(&first);
    CHECK(first == MPI_OP_NULL);
    MPI_Op_create(greater, 1, &other);
    MPI_Waitall(2, requests, statuses);
    CHECK(most[0] == size - 1 && most[1] == 0);
    MPI_Op_free(&other);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    rounds(MPI_COMM_WORLD);
    what_it_named_is_freed_early();
    duplicates();
    an_error_comes_with_the_completion();
    operations_that_are_freed();
    return end("pending");
}
