/* Every rank sends to the next and receives from the one before, 1 B to 8 MB (or argv[1] bytes), blocking and
 * non-blocking, and checks the contents. Ranks should lie at several sites. The exit status is 1 if any byte
 * is wrong. */
#include "pattern.h"
#include <mpi.h>
#include <stdlib.h>

static const size_t MOST_BYTES = 8u << 20;

/* Rank 0 sends first and everyone else receives first: a ring of blocking sends that cannot deadlock. */
static int pass_blocking(unsigned char *out, unsigned char *in, size_t size, int rank, int ranks,
                         int iteration)
{
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    pattern_fill(out, size, pattern_seed(rank, next, size, iteration));
    memset(in, 0, size);
    if (rank == 0) {
        MPI_Send(out, (int)size, MPI_BYTE, next, iteration, MPI_COMM_WORLD);
        MPI_Recv(in, (int)size, MPI_BYTE, before, iteration, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, (int)size, MPI_BYTE, before, iteration, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, (int)size, MPI_BYTE, next, iteration, MPI_COMM_WORLD);
    }
    return pattern_check(in, size, pattern_seed(before, rank, size, iteration), "ring", rank, before);
}

/* All ranks send and receive at once, in both directions. */
static int pass_nonblocking(unsigned char *out, unsigned char *in, size_t size, int rank, int ranks,
                            int iteration)
{
    int wrong = 0;
    for (int step = 1; step < 3; step++) {
        int shift = step == 1 ? 1 : ranks - 1;
        int to = (rank + shift) % ranks, from = (rank + ranks - shift) % ranks;
        MPI_Request both[2];
        MPI_Status done[2];
        pattern_fill(out, size, pattern_seed(rank, to, size, iteration + step));
        memset(in, 0, size);
        MPI_Irecv(in, (int)size, MPI_BYTE, from, iteration, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(out, (int)size, MPI_BYTE, to, iteration, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, done);
        wrong |=
            pattern_check(in, size, pattern_seed(from, rank, size, iteration + step), "ring", rank, from);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, wrong = 0, passes = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : MOST_BYTES;
    unsigned char *out = malloc(most + 1), *in = malloc(most + 1);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);

    /* The sizes are powers of two and one beside each, so that an error by one shows at every protocol's
     * threshold. */
    for (size_t size = 1; size <= most; size *= 4) {
        for (size_t odd = 0; odd < 2 && size + odd <= most; odd++, passes += 2) {
            wrong |= pass_blocking(out, in, size + odd, rank, ranks, passes);
            wrong |= pass_nonblocking(out, in, size + odd, rank, ranks, passes + 1);
        }
    }
    if (most > 0 && (most & (most - 1)) == 0)
        wrong |= pass_nonblocking(out, in, most, rank, ranks, passes++);

    int any = 0;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ring: %d ranks, %d passes of 1 to %zu bytes, %s\n", ranks, passes, most,
               any ? "WRONG" : "all right");
    free(out);
    free(in);
    MPI_Finalize();
    return any;
}
