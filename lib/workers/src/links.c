#include "links.h"

#include "memory.h"
#include "schedule.h"

#include <math.h>
#include <stdlib.h>

#define TAG_PING 3
#define ROUNDS 3
/* Half of the shortest round trip is more than what a message costs a rank, and where all others are far away
 * much more. No MPI is known that spends more than this on a short one. */
#define MESSAGE_SECONDS_MOST 50e-6

static int ping(MPI_Comm comm, const int *children, int count, double *round_trips)
{
    MPI_Request *requests = workers_new(2 * sizeof *requests * count), *sends = requests + count;
    int status = MPI_SUCCESS, which;
    for (int i = 0; i < count && !status; i++)
        status = MPI_Irecv(NULL, 0, MPI_BYTE, children[i], TAG_PING, comm, requests + i);
    double begun = MPI_Wtime();
    for (int i = 0; i < count && !status; i++)
        status = MPI_Isend(NULL, 0, MPI_BYTE, children[i], TAG_PING, comm, sends + i);
    for (int i = 0; i < count && !status; i++) {
        status = MPI_Waitany(count, requests, &which, MPI_STATUS_IGNORE);
        if (!status)
            round_trips[which] = fmin(round_trips[which], MPI_Wtime() - begun);
    }
    if (!status)
        status = MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
    free(requests);
    return status;
}

int workers_links_measure(MPI_Comm comm, int parent, const int *children, int count, double *round_trips)
{
    int status = MPI_SUCCESS;
    for (int i = 0; i < ROUNDS && parent >= 0 && !status; i++) {
        status = MPI_Recv(NULL, 0, MPI_BYTE, parent, TAG_PING, comm, MPI_STATUS_IGNORE);
        if (!status)
            status = MPI_Send(NULL, 0, MPI_BYTE, parent, TAG_PING, comm);
    }
    for (int i = 0; i < count; i++)
        round_trips[i] = 1;
    for (int i = 0; i < ROUNDS && !status; i++)
        status = ping(comm, children, count, round_trips);
    return status;
}

double workers_links_message_seconds(const double *round_trips, int count)
{
    double seconds = MESSAGE_SECONDS_MOST;
    for (int i = 0; i < count; i++)
        seconds = fmin(seconds, round_trips[i] / 2);
    return seconds;
}

double workers_links_busy(double message_seconds, double round_trip)
{
    return 2 * message_seconds / workers_schedule_shortest(round_trip);
}
