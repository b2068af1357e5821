/* One rank at work: it hands out what its boss gives it, computes, and passes results on. Every rank is
 * alike; rank 0 begins with everything and has no boss, and a rank without others below it hands out to
 * itself. */
#ifndef CAUSEWAY_WORKERS_NODE_H
#define CAUSEWAY_WORKERS_NODE_H

#include "hand.h"
#include "mail.h"
#include "progress.h"
#include "schedule.h"
#include "settings.h"
#include "sink.h"
#include "tree.h"

struct workers_node {
    MPI_Comm comm;
    int rank;
    struct causeway_workers *job;
    const struct workers_settings *settings;
    const struct workers_tree *tree;
    int64_t blocks;
    /* Ranks below, and the child that each rank is, or -1; child 0 is the rank itself. */
    int children, *ranks, *child_of;
    struct workers_schedule *schedule;
    struct workers_mail mail;
    struct workers_hand hand;
    /* Sums by grant. */
    struct workers_sums sums;
    struct workers_sink sink;
    struct workers_progress progress;
    int is_asking, computes;
    /* With ranks of other groups. */
    int64_t messages_far;
    /* How it ended. */
    int is_stopped, byes;
    int64_t silent;
    int status;
    struct workers_failure failure;
    /* Which are gone, by child. */
    char *is_gone;
    int idle;
};

void workers_node_open(struct workers_node *node, MPI_Comm comm, struct causeway_workers *job,
                       const struct workers_settings *settings, const struct workers_tree *tree,
                       double message_seconds, const double *round_trips);

/* Works until rank 0 has everything, or has given up. Returns what the run returns. */
int workers_node_run(struct workers_node *node);

void workers_node_close(struct workers_node *node);

/* The ranks that a rank is boss of; returns how many. `children` may be NULL. */
int workers_node_children(const struct workers_tree *tree, int rank, int *children);

#endif
