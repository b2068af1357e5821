/* gap SECONDS: the first rank and the last send each other a message to and fro for so long, its number in
 * it, and tell how long the longest round trip took beside the usual one. Made for networks that stand still
 * for a moment. Exit status 1 if a message is not the one that was due. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1000000 };

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    static double times[MOST];
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double seconds = argc > 1 ? atof(argv[1]) : 5, begin = MPI_Wtime();
    int peer = rank == 0 ? ranks - 1 : 0, done = 0, wrong = 0, trips = 0;
    while ((rank == 0 || rank == ranks - 1) && ranks > 1 && !done) {
        /* The last number is negative. */
        int sent = trips + 1, got = 0;
        double start = MPI_Wtime();
        if (rank == 0) {
            if (start - begin > seconds || trips == MOST - 1)
                sent = -sent;
            MPI_Send(&sent, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
            MPI_Recv(&got, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong |= got != sent;
        } else {
            MPI_Recv(&got, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&got, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
            wrong |= abs(got) != sent;
            sent = got;
        }
        times[trips++] = MPI_Wtime() - start;
        done = sent < 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && trips > 0) {
        qsort(times, (size_t)trips, sizeof *times, compare);
        printf("gap: %d round trips of %d ranks, usually %.1f ms, the longest %.1f ms, %s\n", trips, ranks,
               1e3 * times[trips / 2], 1e3 * times[trips - 1], wrong ? "WRONG" : "all right");
    }
    MPI_Finalize();
    return wrong;
}
