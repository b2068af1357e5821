/* Tests whether a send ends while its receiver is out of MPI: delivery_send FIFO. The receiver waits there
 * until the sender has looked LOOKS times, or the send has ended. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One look moves what libfabric has into the socket. */
enum { BYTES = 4096, LOOKS = 10000 };

int main(int argc, char **argv)
{
    static char memory[BYTES];
    int rank, has_ended = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    /* These messages connect the two. */
    for (int i = 0; i < 2; i++)
        if (rank == i)
            MPI_Send(memory, BYTES, MPI_BYTE, 1 - i, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(memory, BYTES, MPI_BYTE, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(memory, rank == 0, BYTES);
    /* The pipe opens when both have come: then the receiver is out of MPI. */
    int fifo = open(argv[1], rank == 0 ? O_WRONLY : O_RDONLY);
    if (fifo < 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    char end = 0;
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(memory, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        for (int i = 0; i < LOOKS && !has_ended; i++)
            MPI_Test(&request, &has_ended, MPI_STATUS_IGNORE);
        if (write(fifo, &end, 1) != 1)
            MPI_Abort(MPI_COMM_WORLD, 2);
        puts(has_ended ? "the send ended alone" : "the send waited for its receiver");
        if (!has_ended)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        if (read(fifo, &end, 1) != 1)
            MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Recv(memory, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < BYTES; i++)
            if (memory[i] != 1)
                MPI_Abort(MPI_COMM_WORLD, 1);
    }
    close(fifo);
    return MPI_Finalize();
}
