/* Chooses the algorithm of an operation. Every rank must come to the same answer, so the choice depends on
 * nothing but what all know. It knows no MPI. */
#ifndef CAUSEWAY_CHOICE_H
#define CAUSEWAY_CHOICE_H

#include "collectives/select/links.h"
#include "collectives/select/settings.h"

struct choice {
    enum algorithm algorithm;
    int64_t segment;
    /* So many segments are under way before the first arrives. */
    int ahead;
};

/* True where reductions add up in the order of ranks alone, so that they give the same bits whatever the
 * placement. Then one site is enough. */
extern int choice_by_rank;

/* Sets what all ranks have agreed on (topology/agreement.c). `links` has a row for each of `sites`, which
 * choice_forget frees; NULL means that all ways are taken to be alike. */
void choice_use(const struct settings *settings, struct link *links, int sites);

/* The way between two sites of MPI_COMM_WORLD; NULL where all are taken to be alike. */
const struct link *choice_link(int from, int to);

void choice_forget(void);

/* `bytes` is one rank's part; of a reduced vector it is the whole. The layout's by_rank is not looked at. */
struct choice choose(struct layout layout, enum operation operation, int64_t bytes);

/* Large messages go in pieces of so many bytes. */
int64_t choice_segment(void);

#endif
