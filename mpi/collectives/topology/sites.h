/* Says at which site and on which host each process of MPI_COMM_WORLD is. */
#ifndef CAUSEWAY_SITES_H
#define CAUSEWAY_SITES_H

#include "common/binding/mpi_calls.h"

#define SITE_NAME_BYTES 64

/* What a rank tells all others beside its place. */
struct word {
    unsigned char has_hooks;
    /* A digest of its settings (topology/agreement.h). */
    unsigned char settings[8];
};

/* What all ranks have told. Nothing, where the job has one site for certain. */
struct words {
    int were_told, all_have_hooks, settings_are_alike;
};

/* Learns the sites of all ranks, and what they tell. Every rank calls it once, right after MPI has been
 * initialised. It costs one allgather of 2 * SITE_NAME_BYTES bytes and a word where the job may have several
 * sites, and nothing elsewhere. The beginning has as few exchanges as can be: each is a round trip between
 * sites, and a turn of every rank where ranks share cores. */
void sites_learn(const struct word *own, struct words *all);

/* Whether sites_learn was called. A process that has nothing but sessions has no MPI_COMM_WORLD to ask. */
int sites_learnt(void);

/* The number of sites of MPI_COMM_WORLD. It is 1 before sites_learn, without Causeway, and where only one
 * site takes part. */
extern int sites_count;

/* Whether the site of every rank is known. Every rank answers alike. Without Causeway no site is known. */
int sites_known(void);

/* The site of a rank of MPI_COMM_WORLD, below sites_count. Sites are numbered by their lowest ranks, and so
 * are hosts. */
int sites_of(int world_rank);

/* The host of a rank, numbered over all sites. To be called only where sites_known. */
int sites_host_of(int world_rank);

/* The name of a site. To be called only where sites_known. */
const char *sites_name(int site);

/* Finds the sites of the `size` ranks of a group. False when one of them is of another world, which the ranks
 * of a communicator all find. */
int sites_of_group(MPI_Group group, int size, int *site);

void sites_forget(void);

#endif
