/* Communicators of many kinds are made, used and freed in many orders, some under an operation, and some are
 * left when MPI ends. What is wrong with that shows in the sanitizers that this is built with (lifetimes.sh),
 * and in an MPI that runs out of communicators when some are not given back.
 *
 * lifetimes ROUNDS [SEED]: communicators and an active request are left with an even seed. */
#include "native.h"

#include "communicators.h"

#include <string.h>

#define COUNT 100

/* Whether one collective says what it must: each rank's part holds its rank. */
static int is_right(MPI_Comm comm)
{
    int rank, size, one, sum = -1, out[COUNT], in[COUNT], all[MAX_RANKS], right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int root = (int)draw(1000) % size, total = size * (size - 1) / 2;
    one = rank;
    for (int i = 0; i < COUNT; i++)
        out[i] = rank;
    switch (draw(6)) {
    case 0:
        MPI_Barrier(comm);
        return 1;
    case 1:
        MPI_Bcast(&one, 1, MPI_INT, root, comm);
        return one == root;
    case 2:
        MPI_Allreduce(out, in, COUNT, MPI_INT, MPI_SUM, comm);
        return in[0] == total && in[COUNT - 1] == total;
    case 3:
        MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        return sum == rank * (rank + 1) / 2;
    case 4:
        MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm);
        break;
    default:
        MPI_Alltoall(out, 1, MPI_INT, all, 1, MPI_INT, comm);
    }
    for (int i = 0; i < size; i++)
        right &= all[i] == i;
    return right;
}

/* An alltoallv whose arrays and type the program does not keep. What it found is right when each rank's place
 * holds that rank. */
struct exchange {
    int out[MAX_RANKS], in[MAX_RANKS];
    MPI_Request request;
};

static void exchange_begin(struct exchange *one, MPI_Comm comm, int is_persistent)
{
    MPI_Datatype type;
    int rank, size, *counts = malloc(MAX_RANKS * sizeof *counts),
                    *places = malloc(MAX_RANKS * sizeof *places);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < size; i++)
        counts[i] = 1, places[i] = i, one->out[i] = rank, one->in[i] = -1;
    if (is_persistent) {
        INIT(Alltoallv)(one->out, counts, places, type, one->in, counts, places, type, comm, MPI_INFO_NULL,
                        &one->request);
        MPI_Start(&one->request);
    } else {
        MPI_Ialltoallv(one->out, counts, places, type, one->in, counts, places, type, comm, &one->request);
        memset(counts, 0x55, MAX_RANKS * sizeof *counts);
    }
    free(counts);
    free(places);
    MPI_Type_free(&type);
}

static int exchange_end(struct exchange *one, int is_persistent)
{
    int size, right = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 2; round++) {
        MPI_Wait(&one->request, MPI_STATUS_IGNORE);
        for (int i = 0; i < size; i++) {
            right &= one->in[i] == i;
            one->in[i] = -1;
        }
        if (!is_persistent)
            return right;
        if (round == 0)
            MPI_Start(&one->request);
    }
    MPI_Request_free(&one->request);
    return right;
}

/* Starts a persistent one, and one that does not wait, on a communicator that is freed. */
static int exchanges_are_right(void)
{
    struct exchange some[2];
    int right = 1;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    /* The communicator's first collective comes first. */
    MPI_Barrier(comm);
    for (int i = 0; i < 2; i++)
        exchange_begin(&some[i], comm, i);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 2; i++)
        right &= exchange_end(&some[i], i);
    return right;
}

/* This one is freed as MPI_Finalize frees what belongs to MPI_COMM_SELF. */
static struct exchange left;

static int free_left(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_Request_free(&left.request);
}

/* Starts one anew on a communicator that has been freed. */
static void leave_active(void)
{
    int key;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    exchange_begin(&left, comm, 1);
    MPI_Comm_free(&comm);
    MPI_Wait(&left.request, MPI_STATUS_IGNORE);
    MPI_Start(&left.request);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_left, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, rounds = argc > 1 ? atoi(argv[1]) : 100;
    unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct {
        int64_t messages, bytes;
    } crossed;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    void (*read_crossings)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, CROSSINGS);
    if (!read_crossings || size > MAX_RANKS) {
        fprintf(stderr, "lifetimes: %s\n",
                read_crossings ? "too many ranks" : "the library is neither linked nor preloaded");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    state = seed * 0x9e3779b97f4a7c15ULL | 1;
    make_communicators(rank, size);
    for (int i = 0; i < rounds; i++) {
        replace_communicator();
        /* The forms of Open MPI's and MPICH's own need what has been freed. */
        if (lets_others_progress() && draw(4) == 0)
            wrong |= !exchanges_are_right();
        /* Some communicators are never used, and some often. */
        for (uint32_t j = draw(4); j > 0; j--) {
            uint32_t which = draw(COMMUNICATORS);
            uint64_t before = state;
            wrong |= !is_right(communicators[which]);
            /* The ranks of the parts may have drawn different numbers. */
            state = before;
            draw(2);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    read_crossings(&crossed);
    MPI_Allreduce(MPI_IN_PLACE, &crossed.messages, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (seed % 2)
        free_communicators();
    else if (lets_others_progress())
        leave_active();
    if (rank == 0)
        printf("lifetimes: %d communicators with seed %llu, %lld messages between sites: %s\n", rounds, seed,
               (long long)crossed.messages, wrong || !crossed.messages ? "WRONG" : "all right");
    MPI_Finalize();
    return wrong || !crossed.messages;
}
