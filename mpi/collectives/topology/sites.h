/* The site and the host of each process of MPI_COMM_WORLD. */
#ifndef CAUSEWAY_SITES_H
#define CAUSEWAY_SITES_H

#include "common/binding/mpi_calls.h"

#define SITE_NAME_BYTES 64

/* What a rank tells all others, in addition to its place. */
struct word {
    unsigned char has_hooks;
    /* A digest of its settings (topology/agreement.h). */
    unsigned char settings[8];
};

/* What all ranks have told; all zero if the job certainly has only one site. */
struct words {
    int were_told, all_have_hooks, settings_are_alike;
};

/* Learns the sites and the words of all ranks. Every rank calls it once, right after MPI has been
 * initialised. If the job may have several sites, it costs one allgather of 2 * SITE_NAME_BYTES bytes and a
 * word; otherwise nothing. Startup has as few exchanges as possible: each costs a round trip between sites,
 * and a turn of every rank if ranks share cores. */
void sites_learn(const struct word *own, struct words *all);

/* Whether sites_learn was called. A process that uses only sessions has no MPI_COMM_WORLD to ask. */
int sites_learnt(void);

/* The number of sites of MPI_COMM_WORLD. It is 1 before sites_learn, without Causeway, and if only one site
 * takes part. */
extern int sites_count;

/* Whether the site of every rank is known; the answer is the same at every rank. Without Causeway no site is
 * known. */
int sites_known(void);

/* The site of a rank of MPI_COMM_WORLD, below sites_count. Sites are numbered by their lowest ranks, and so
 * are hosts. */
int sites_of(int world_rank);

/* The host of a rank, numbered over all sites. Call it only if sites_known(). */
int sites_host_of(int world_rank);

/* The name of a site. Call it only if sites_known(). */
const char *sites_name(int site);

/* Finds the sites of the `size` ranks of a group. Returns false if one of them belongs to another world; all
 * ranks of a communicator get the same answer. */
int sites_of_group(MPI_Group group, int size, int *site);

void sites_forget(void);

#endif
