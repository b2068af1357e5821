/* own_world WHAT: one program over sites that each run their own MPI.
 *
 *   exchange   every rank sends to every other, in sizes from none to 1 MB, and checks what it receives
 *   wait       says that it is there, then waits for a message that nobody sends
 *   abort      the same, but the last rank calls MPI_Abort with 7
 *   exit       the same, but the last rank exits with 3, without MPI_Finalize
 *   kill       the same, but the last rank kills itself */
#include "pattern.h"
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 };

static unsigned char out[MOST_BYTES], in[MOST_BYTES];

static int exchange(int rank, int ranks)
{
    static const size_t sizes[] = {0, 1, 1000, 65536, MOST_BYTES};
    int wrong = 0;
    for (int i = 0; i < 5; i++) {
        for (int step = 1; step < ranks; step++) {
            int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
            size_t size = sizes[i];
            MPI_Status status;
            MPI_Request request;
            pattern_fill(out, size, pattern_seed(rank, to, size, i));
            memset(in, 0, size);
            MPI_Isend(out, (int)size, MPI_BYTE, to, step, MPI_COMM_WORLD, &request);
            MPI_Recv(in, MOST_BYTES, MPI_BYTE, from, step, MPI_COMM_WORLD, &status);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            int count = 0;
            MPI_Get_count(&status, MPI_BYTE, &count);
            wrong |= status.MPI_SOURCE != from || status.MPI_TAG != step || (size_t)count != size;
            wrong |= pattern_check(in, size, pattern_seed(from, rank, size, i), "own_world", rank, from);
        }
    }
    return wrong;
}

static void end_otherwise(const char *what)
{
    if (strcmp(what, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(what, "exit") == 0)
        _Exit(3);
    if (strcmp(what, "kill") == 0)
        raise(SIGKILL);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "exchange";
    int rank, ranks, wrong = 0, all = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(what, "exchange") != 0) {
        /* All are there, and have spoken with each other, before one goes. */
        MPI_Barrier(MPI_COMM_WORLD);
        printf("rank %d is there\n", rank);
        fflush(stdout);
        if (rank == ranks - 1)
            end_otherwise(what);
        MPI_Recv(in, 1, MPI_BYTE, (rank + 1) % ranks, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    wrong = exchange(rank, ranks);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0)
        printf("own_world: %d ranks, %s\n", ranks, all ? "wrong" : "all right");
    MPI_Finalize();
    return all;
}
