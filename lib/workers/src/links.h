/* What messages between a rank and others take, measured, and whether bosses pay for themselves. */
#ifndef CAUSEWAY_WORKERS_LINKS_H
#define CAUSEWAY_WORKERS_LINKS_H

#include <mpi.h>

/* Every rank of a tree calls it: it answers its boss, if it has one (-1), and then asks those below. Each
 * gets the shortest of three round trips, in seconds. */
int workers_links_measure(MPI_Comm comm, int parent, const int *children, int count, double *round_trips);

/* What a message costs the rank that sends or gets it, from its round trips to others, in seconds. */
double workers_links_message_seconds(const double *round_trips, int count);

/* The share of its time that a boss spends on messages with a rank while chunks are the shortest. */
double workers_links_busy(double message_seconds, double round_trip);

#endif
