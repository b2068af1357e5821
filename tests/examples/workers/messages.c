/* messages: what scale.c is given of this machine. Rank 0 asks each other rank in turn, 200 times, and prints
 * the shortest and the median round trip in microseconds. Then all others send at once, with 16 messages
 * under way each, and rank 0 answers each as a boss does: it looks, receives and sends. It prints the
 * processor time that one message, sent or received, took of rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 200
#define WINDOW 16
#define EACH 4000
#define BYTES 64

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void ask(int rank, int ranks)
{
    char text[BYTES] = "";
    double took[ROUNDS];
    for (int other = 1; other < ranks; other++) {
        for (int i = 0; i < ROUNDS && (rank == 0 || rank == other); i++) {
            double begun = MPI_Wtime();
            if (rank)
                MPI_Recv(text, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(text, BYTES, MPI_BYTE, rank ? 0 : other, 0, MPI_COMM_WORLD);
            if (!rank)
                MPI_Recv(text, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            took[i] = MPI_Wtime() - begun;
        }
        qsort(took, ROUNDS, sizeof *took, by_size);
        if (rank == 0)
            printf("round trip to rank %d: %.1f us at least, median %.1f us\n", other, took[0] * 1e6,
                   took[ROUNDS / 2] * 1e6);
    }
}

/* Half of the messages are received, half are sent. */
static void serve(int ranks)
{
    static char text[BYTES];
    int is_there, messages = 2 * EACH * (ranks - 1);
    double idle = 0, begun = cpu_seconds();
    for (int i = 0; i < messages / 2; i++) {
        MPI_Status found;
        double looked = cpu_seconds();
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &is_there, &found);
        for (; !is_there; idle = idle + cpu_seconds() - looked) {
            looked = cpu_seconds();
            MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &is_there, &found);
        }
        MPI_Recv(text, BYTES, MPI_BYTE, found.MPI_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(text, BYTES, MPI_BYTE, found.MPI_SOURCE, 2, MPI_COMM_WORLD);
    }
    double took = cpu_seconds() - begun;
    printf("a message takes %.1f us of rank 0, and %.1f us with looking for more\n",
           (took - idle) / messages * 1e6, took / messages * 1e6);
}

static void load(void)
{
    static char text[BYTES];
    for (int i = 0; i < EACH + WINDOW; i++) {
        if (i >= WINDOW)
            MPI_Recv(text, BYTES, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (i < EACH)
            MPI_Send(text, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ask(rank, ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        serve(ranks);
    else
        load();
    MPI_Finalize();
    return 0;
}
