/* Which site each process of MPI_COMM_WORLD is at. */
#ifndef CAUSEWAY_SITES_H
#define CAUSEWAY_SITES_H

#define SITE_NAME_BYTES 64

/* Learns the sites of all ranks; called once, by every rank, right after MPI has been initialised. Costs one allgather of
 * SITE_NAME_BYTES bytes where the job has several sites, and nothing elsewhere. */
void sites_learn(void);

/* Number of sites of MPI_COMM_WORLD; 1 before sites_learn, without Causeway, and where only one site takes part. */
extern int sites_count;

/* The site of a rank of MPI_COMM_WORLD, below sites_count; sites are numbered by their lowest ranks. */
int sites_of(int world_rank);

/* A site's name. */
const char *sites_name(int site);

void sites_forget(void);

#endif
