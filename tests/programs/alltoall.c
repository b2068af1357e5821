/* MPI_Alltoall and MPI_Alltoallv over all ranks, 1 B to 8 MB per rank (the sum over its peers), contents
 * checked. argv[1]: most bytes per rank. Exit status 1 if any byte is wrong. */
#include "pattern.h"
#include <mpi.h>
#include <stdlib.h>

static const size_t MOST_BYTES = 8u << 20;

static int exchange(unsigned char *out, unsigned char *in, size_t block, int rank, int ranks, int iteration)
{
    for (int to = 0; to < ranks; to++)
        pattern_fill(out + to * block, block, pattern_seed(rank, to, block, iteration));
    memset(in, 0, block * ranks);
    MPI_Alltoall(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    int wrong = 0;
    for (int from = 0; from < ranks; from++)
        wrong |= pattern_check(in + from * block, block, pattern_seed(from, rank, block, iteration),
                               "alltoall", rank, from);
    return wrong;
}

/* How many bytes rank `from` sends to rank `to`: another number for every pair, and none for some. */
static int share(size_t block, int from, int to, int ranks)
{
    return (int)(block * (size_t)((from + 2 * to) % ranks) / (size_t)ranks);
}

static int exchange_uneven(unsigned char *out, unsigned char *in, size_t block, int rank, int ranks,
                           int iteration)
{
    int *counts = malloc(4 * (size_t)ranks * sizeof *counts);
    if (!counts)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int *send = counts, *send_at = counts + ranks, *receive = counts + 2 * ranks,
        *receive_at = counts + 3 * ranks;
    for (int peer = 0, sent = 0, received = 0; peer < ranks; peer++) {
        send[peer] = share(block, rank, peer, ranks);
        receive[peer] = share(block, peer, rank, ranks);
        send_at[peer] = sent;
        receive_at[peer] = received;
        sent += send[peer];
        received += receive[peer];
        pattern_fill(out + send_at[peer], (size_t)send[peer], pattern_seed(rank, peer, block, iteration));
    }
    memset(in, 0, block * ranks);
    MPI_Alltoallv(out, send, send_at, MPI_BYTE, in, receive, receive_at, MPI_BYTE, MPI_COMM_WORLD);
    int wrong = 0;
    for (int from = 0; from < ranks; from++)
        wrong |= pattern_check(in + receive_at[from], (size_t)receive[from],
                               pattern_seed(from, rank, block, iteration), "alltoallv", rank, from);
    free(counts);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, wrong = 0, rounds = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t most = (argc > 1 ? strtoul(argv[1], NULL, 10) : MOST_BYTES) / (size_t)ranks;
    unsigned char *out = malloc(most * ranks + 1), *in = malloc(most * ranks + 1);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);

    for (size_t block = 1; block <= most; block = block < most && block * 8 > most ? most : block * 8) {
        wrong |= exchange(out, in, block, rank, ranks, rounds++);
        wrong |= exchange_uneven(out, in, block, rank, ranks, rounds++);
    }

    int any = 0;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("alltoall: %d ranks, %d rounds of 1 to %zu bytes per pair, %s\n", ranks, rounds, most,
               any ? "WRONG" : "all right");
    free(out);
    free(in);
    MPI_Finalize();
    return any;
}
