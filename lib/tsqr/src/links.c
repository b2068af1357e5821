#include "links.h"

#include "site_tree.h"

#include <stddef.h>

#define TAG_PING 2
#define TAG_PONG 3
#define TAG_ROW 4

/* The first messages wait for connections. */
#define ROUNDS 3

/* One round: a ping to each other leader, an answer to each of theirs, the time of each answer to ours. */
static void exchange(MPI_Comm comm, const int *leaders, int sites, int own, double *round_trips)
{
    /* Pongs, pings, what we send of either. */
    MPI_Request requests[4 * TSQR_MOST_MEASURED_SITES];
    int left = 0;
    for (int i = 0; i < 4 * sites; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < sites; i++) {
        if (i == own)
            continue;
        MPI_Irecv(NULL, 0, MPI_BYTE, leaders[i], TAG_PONG, comm, &requests[i]);
        MPI_Irecv(NULL, 0, MPI_BYTE, leaders[i], TAG_PING, comm, &requests[sites + i]);
        left += 2;
    }
    double begin = MPI_Wtime();
    for (int i = 0; i < sites; i++)
        if (i != own)
            MPI_Isend(NULL, 0, MPI_BYTE, leaders[i], TAG_PING, comm, &requests[2 * sites + i]);
    while (left > 0) {
        int which;
        MPI_Waitany(2 * sites, requests, &which, MPI_STATUS_IGNORE);
        int peer = which % sites;
        if (which >= sites) {
            MPI_Isend(NULL, 0, MPI_BYTE, leaders[peer], TAG_PONG, comm, &requests[3 * sites + peer]);
        } else {
            double seconds = MPI_Wtime() - begin;
            round_trips[peer] = seconds < round_trips[peer] ? seconds : round_trips[peer];
        }
        left--;
    }
    MPI_Waitall(2 * sites, requests + (2 * sites), MPI_STATUSES_IGNORE);
}

void tsqr_links_measure(MPI_Comm comm, const int *leaders, int sites, double *seconds)
{
    double round_trips[TSQR_MOST_MEASURED_SITES];
    int rank, own = 0;
    MPI_Comm_rank(comm, &rank);
    while (leaders[own] != rank)
        own++;
    for (int i = 0; i < sites; i++)
        round_trips[i] = i == own ? 0 : 1e9;
    for (int i = 0; i < ROUNDS; i++)
        exchange(comm, leaders, sites, own, round_trips);
    if (own > 0) {
        MPI_Send(round_trips, sites, MPI_DOUBLE, leaders[0], TAG_ROW, comm);
        return;
    }
    for (int j = 0; j < sites; j++)
        seconds[j] = round_trips[j];
    for (int i = 1; i < sites; i++)
        MPI_Recv(seconds + i * sites, sites, MPI_DOUBLE, leaders[i], TAG_ROW, comm, MPI_STATUS_IGNORE);
    /* Both ends have seen each link; the shorter time had less beside it. */
    for (int i = 0; i < sites; i++)
        for (int j = 0; j <= i; j++) {
            double here = seconds[i * sites + j], there = seconds[j * sites + i];
            seconds[i * sites + j] = seconds[j * sites + i] = (here < there ? here : there) / 2;
        }
}
