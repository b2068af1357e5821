/* Communicators of many kinds are made, used and freed in many orders, and some are left when MPI ends. What is wrong with that shows in
 * the sanitizers that this is built with (lifetimes.sh), and in an MPI that runs out of communicators when some are not given back.
 *
 * lifetimes ROUNDS [SEED]: communicators are left with an even seed. */
#include "native.h"

#include "communicators.h"

#include <string.h>

#define COUNT 100

/* Whether one collective says what it must: each rank's part holds its rank. */
static int is_right(MPI_Comm comm)
{
    int rank, size, one, sum = -1, out[COUNT], in[COUNT], all[MOST_RANKS], right = 1;
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
    if (!read_crossings || size > MOST_RANKS) {
        fprintf(stderr, "lifetimes: %s\n", read_crossings ? "too many ranks" : "the library is neither linked nor preloaded");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    state = seed * 0x9e3779b97f4a7c15ULL | 1;
    make_communicators(rank, size);
    for (int i = 0; i < rounds; i++) {
        replace_communicator();
        /* Some are never used, some often. */
        for (uint32_t j = draw(4); j > 0; j--) {
            uint32_t which = draw(COMMUNICATORS);
            uint64_t before = state;
            wrong |= !is_right(communicators[which]);
            /* The parts' ranks may have drawn unlike numbers. */
            state = before;
            draw(2);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    read_crossings(&crossed);
    MPI_Allreduce(MPI_IN_PLACE, &crossed.messages, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (seed % 2)
        free_communicators();
    if (rank == 0)
        printf("lifetimes: %d communicators with seed %llu, %lld messages between sites: %s\n", rounds, seed, (long long)crossed.messages,
               wrong || !crossed.messages ? "WRONG" : "all right");
    MPI_Finalize();
    return wrong || !crossed.messages;
}
