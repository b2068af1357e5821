/* latency ROUNDS: what a message between the first two ranks takes, which are at one site; further ranks, of
 * other sites, sleep. Prints a line for each way of receiving: its name, bytes, and the least and the median
 * time one way of ROUNDS rounds, in ns. Who starts it puts each of the two on a core of its own. */
#include "world_test.h"

#include <unistd.h>

enum {
    SMALL = 8,
    LARGE = 4 << 20,
    SMALL_MESSAGES = 2000,
    LARGE_MESSAGES = 10,
    MOST_ROUNDS = 1000,
    OVER = 55
};

enum way { RECV, IRECV, RECV_ANY, IRECV_ANY, RECV_WHILE_FAR, WAYS };
static const char *const names[] = {"recv", "irecv", "recv-any", "irecv-any", "recv-while-far-waits"};

static void receive(enum way way, void *buffer, int bytes)
{
    int from = way == RECV_ANY || way == IRECV_ANY ? MPI_ANY_SOURCE : 1 - rank;
    MPI_Status status;
    if (way == IRECV || way == IRECV_ANY) {
        MPI_Request request;
        MPI_Irecv(buffer, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
    } else {
        MPI_Recv(buffer, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status);
    }
    CHECK(status.MPI_SOURCE == 1 - rank);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(enum way way, void *buffer, int bytes, int messages, int rounds)
{
    double times[MOST_ROUNDS];
    MPI_Request far = MPI_REQUEST_NULL;
    int nothing;
    if (way == RECV_WHILE_FAR && size > 2)
        MPI_Irecv(&nothing, 1, MPI_INT, size - 1, 77, MPI_COMM_WORLD, &far);
    for (int round = 0; round < rounds; round++) {
        double began = MPI_Wtime();
        for (int i = 0; i < messages; i++) {
            if (rank == 1)
                receive(way, buffer, bytes);
            MPI_Send(buffer, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
            if (rank == 0)
                receive(way, buffer, bytes);
        }
        times[round] = (MPI_Wtime() - began) / messages / 2 * 1e9;
    }
    if (far != MPI_REQUEST_NULL) {
        MPI_Cancel(&far);
        MPI_Wait(&far, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        qsort(times, (size_t)rounds, sizeof *times, by_value);
        printf("%s,%d,%.0f,%.0f\n", names[way], bytes, times[0], times[rounds / 2]);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 20, is_over = 0;
    CHECK(size >= 2 && rounds > 0 && rounds <= MOST_ROUNDS);
    char *buffer = calloc(LARGE, 1);
    while (rank > 1 && !is_over) {
        usleep(20000);
        MPI_Iprobe(0, OVER, MPI_COMM_WORLD, &is_over, MPI_STATUS_IGNORE);
    }
    if (rank > 1)
        MPI_Recv(buffer, 1, MPI_BYTE, 0, OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int way = 0; rank < 2 && !wrong && way < WAYS; way++) {
        measure(way, buffer, SMALL, SMALL_MESSAGES, rounds);
        measure(way, buffer, LARGE, LARGE_MESSAGES, rounds);
    }
    for (int to = 2; rank == 0 && to < size; to++)
        MPI_Send(buffer, 1, MPI_BYTE, to, OVER, MPI_COMM_WORLD);
    free(buffer);
    return end("latency");
}
