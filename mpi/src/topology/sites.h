/* Which site and which host each process of MPI_COMM_WORLD is at. */
#ifndef CAUSEWAY_SITES_H
#define CAUSEWAY_SITES_H

#include "binding/mpi_calls.h"

#define SITE_NAME_BYTES 64

/* Learns the sites of all ranks; called once, by every rank, right after MPI has been initialised. Costs one
 * allgather of 2 * SITE_NAME_BYTES bytes where the job may have several sites, and nothing elsewhere. */
void sites_learn(void);

/* Whether it was: in a process that has but sessions there is no MPI_COMM_WORLD to ask. */
int sites_learnt(void);

/* Number of sites of MPI_COMM_WORLD; 1 before sites_learn, without Causeway, and where only one site takes
 * part. */
extern int sites_count;

/* Whether the site of every rank is known; every rank answers alike. Without Causeway it is not. */
int sites_known(void);

/* The site of a rank of MPI_COMM_WORLD, below sites_count; sites are numbered by their lowest ranks, and so
 * are hosts. */
int sites_of(int world_rank);

/* Only where sites_known: its host, numbered over all sites. */
int sites_host_of(int world_rank);

/* Only where sites_known. */
const char *sites_name(int site);

/* Sites of the `size` ranks of a group; 0 when one of them is of another world, which the ranks of a
 * communicator all find. */
int sites_of_group(MPI_Group group, int size, int *site);

void sites_forget(void);

#endif
