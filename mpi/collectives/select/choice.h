/* Chooses the algorithm of an operation. Every rank must make the same choice, so it depends only on what all
 * ranks know. This file does not depend on MPI. */
#ifndef CAUSEWAY_CHOICE_H
#define CAUSEWAY_CHOICE_H

#include "collectives/select/links.h"
#include "collectives/select/settings.h"

struct choice {
    enum algorithm algorithm;
    int64_t segment;
    /* The number of segments that are in transit before the first arrives. */
    int ahead;
};

/* True if reductions combine only in the order of ranks, so that they give the same bits whatever the
 * placement. Then reductions are improved even on one site. */
extern int choice_by_rank;

/* Sets what all ranks have agreed on (topology/agreement.c). `links` is a matrix with a row for each site,
 * which choice_forget frees; NULL means that all links count as equal. */
void choice_use(const struct settings *settings, struct link *links, int sites);

/* The link between two sites of MPI_COMM_WORLD; NULL if all links count as equal. */
const struct link *choice_link(int from, int to);

void choice_forget(void);

/* `bytes` is the size of one rank's part, or of the whole vector in a reduction. Ignores the layout's
 * by_rank. */
struct choice choose(struct layout layout, enum operation operation, int64_t bytes);

/* The size in bytes of the pieces into which large messages are cut. */
int64_t choice_segment(void);

#endif
