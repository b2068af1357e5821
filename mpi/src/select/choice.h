/* Which algorithm an operation gets. Every rank must come to the same answer, so it is asked of nothing but what all know. */
#ifndef CAUSEWAY_CHOICE_H
#define CAUSEWAY_CHOICE_H

#include "select/links.h"
#include "select/model.h"
#include "topology/hierarchy.h"

struct choice {
    enum algorithm algorithm;
    int64_t segment;
    /* Segments that are under way before the first arrives. */
    int ahead;
};

/* Reductions add up in the order of ranks alone, so that they give the same bits whatever the placement: then one site is enough. */
extern int choice_by_rank;

/* Whether this process is told so; every one is or none. */
int choice_wants_one_site(void);

/* Reads the settings; rank 0's word holds for all. Called once, with sites_learn. */
void choice_learn(void);

/* The way between two sites of MPI_COMM_WORLD; NULL where all are taken to be alike. */
const struct link *choice_link(int from, int to);

void choice_forget(void);

/* `bytes`: one rank's part; of a reduced vector the whole. `commutes`: the operation of a reduction does. */
struct choice choose(const struct hierarchy *on, enum operation operation, int64_t bytes, int commutes);

/* In pieces of how many bytes large messages go. */
int64_t choice_segment(void);

#endif
