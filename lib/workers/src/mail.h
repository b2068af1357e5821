/* Messages of one rank with its boss and with those below it: reports go up, orders go down. What is under
 * way is bounded: a rank has at most WINDOW pieces of a report on the way, sent so that MPI says when the
 * boss has begun to take them (MPI_Issend), and each chunk that a boss orders was asked for. */
#ifndef CAUSEWAY_WORKERS_MAIL_H
#define CAUSEWAY_WORKERS_MAIL_H

#include "records.h"

#include <mpi.h>

/* Four pieces of 256 kB fill 1 Gbit/s over a round trip of 8 ms. */
#define WINDOW 4
/* Two grants and the end can be on their way to one child. */
#define ORDERS 4

enum workers_order_kind { ORDER_GRANT = 1, ORDER_STOP };

struct workers_order {
    int64_t kind;
    /* ORDER_GRANT. */
    int64_t unit, first, count;
    /* ORDER_STOP: what all return. */
    int64_t status;
    struct workers_failure failure;
};

struct workers_mail {
    MPI_Comm comm;
    /* -1 at rank 0. */
    int parent;
    int64_t piece_bytes;
    /* The piece that is being filled, and those under way. */
    struct workers_piece open, sent[WINDOW];
    MPI_Request sending[WINDOW];
    /* ORDERS of each child. */
    int children;
    struct workers_order *orders;
    MPI_Request *ordering;
    /* The MPI has said that some rank is lost, and not which: each is then asked about alone. */
    int is_wary;
    char *received;
    size_t received_room;
    int64_t messages_received, messages_sent;
};

void workers_mail_open(struct workers_mail *mail, MPI_Comm comm, int parent, int children,
                       int64_t piece_bytes);

/* Whether more results may come into the open piece. Where not, those below wait, too: what a rank keeps for
 * its boss is bounded. */
int workers_mail_has_room(const struct workers_mail *mail);

/* Sends the open piece where that should go and can. MPI's error or MPI_SUCCESS, as all below. */
int workers_mail_flush(struct workers_mail *mail, double rate);

/* `child` counts from 0, `rank` is its rank. */
int workers_mail_order(struct workers_mail *mail, int child, int rank, const struct workers_order *order);

/* Whether an order has come, and which. */
int workers_mail_take_order(struct workers_mail *mail, struct workers_order *order, int *is_there);

/* A report of one of the children with these ranks, or `*bytes` 0 where there is none now. It lasts until the
 * next call. `is_gone` says which are lost, counted from 1. On an error `*source` is the rank that is lost.
 */
int workers_mail_take_report(struct workers_mail *mail, const int *ranks, const char *is_gone, int *source,
                             const char **data, size_t *bytes);

/* Whether all that was sent has been taken. */
int workers_mail_is_sent(struct workers_mail *mail, int *is_sent);

/* Frees what MPI needs no more. */
void workers_mail_close(struct workers_mail *mail);

#endif
