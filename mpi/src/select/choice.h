/* Which algorithm an operation gets. Every rank must come to the same answer, so it is asked of nothing but
 * what all know. It knows no MPI. */
#ifndef CAUSEWAY_CHOICE_H
#define CAUSEWAY_CHOICE_H

#include "select/links.h"
#include "select/settings.h"

struct choice {
    enum algorithm algorithm;
    int64_t segment;
    /* Segments that are under way before the first arrives. */
    int ahead;
};

/* Reductions add up in the order of ranks alone, so that they give the same bits whatever the placement: then
 * one site is enough. */
extern int choice_by_rank;

/* What all ranks have agreed on (topology/agreement.c); `links` is a row for each of `sites`, which is freed
 * by choice_forget, or NULL where all ways are taken to be alike. */
void choice_use(const struct settings *settings, struct link *links, int sites);

/* The way between two sites of MPI_COMM_WORLD; NULL where all are taken to be alike. */
const struct link *choice_link(int from, int to);

void choice_forget(void);

/* `bytes`: one rank's part; of a reduced vector the whole. Whether it is by rank is not asked of the
 * layout. */
struct choice choose(struct layout layout, enum operation operation, int64_t bytes);

/* In pieces of how many bytes large messages go. */
int64_t choice_segment(void);

#endif
