/* few: what has few streams to pass along opens few: after a communicator was made and all ranks have told
 * all others something, most pairs of ranks at two sites have no stream yet. Half of the ranks are at one
 * site, half at the other. */
#include "world_test.h"

#include <sys/resource.h>
#include <sys/socket.h>

enum { MOST = 64 };

/* TCP connections of this process. */
static int connections(void)
{
    struct rlimit files;
    int count = 0;
    getrlimit(RLIMIT_NOFILE, &files);
    for (int fd = 3; fd < (int)files.rlim_cur && fd < 1 << 16; fd++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        count += getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.ss_family == AF_INET;
    }
    return count;
}

static void tell_all(void)
{
    int all[MOST];
    MPI_Comm again;
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, again);
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i);
    MPI_Comm_free(&again);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange_with_far_ranks(void)
{
    int half = size / 2, first = rank < half ? half : 0;
    for (int i = 0; i < half; i++) {
        int far = first + (i - rank + 2 * half) % half, got = -1;
        MPI_Sendrecv(&rank, 1, MPI_INT, far, 3, &got, 1, MPI_INT, far, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == far);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    tell_all();
    int few = connections();
    exchange_with_far_ranks();
    /* The tree over all ranks has one edge that leads to the other site, and it may end here. */
    CHECK(connections() - few >= size / 2 - 1);
    return end("few");
}
