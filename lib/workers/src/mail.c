#include "mail.h"

#include "memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG_REPORT 1
#define TAG_ORDER 2

void workers_mail_open(struct workers_mail *mail, MPI_Comm comm, int parent, int children,
                       int64_t piece_bytes)
{
    memset(mail, 0, sizeof *mail);
    mail->comm = comm;
    mail->parent = parent;
    mail->piece_bytes = piece_bytes;
    mail->children = children;
    mail->orders = workers_new(sizeof *mail->orders * ORDERS * children);
    mail->ordering = workers_new(sizeof *mail->ordering * ORDERS * children);
    for (int i = 0; i < ORDERS * children; i++)
        mail->ordering[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < WINDOW; i++)
        mail->sending[i] = MPI_REQUEST_NULL;
}

/* A request that is free, of so many; -1 where all are under way. */
static int free_request(MPI_Request *requests, int count)
{
    for (int i = 0; i < count; i++) {
        int is_done = 1;
        if (requests[i] != MPI_REQUEST_NULL && MPI_Test(requests + i, &is_done, MPI_STATUS_IGNORE))
            /* What could not be sent is no longer under way; the next call to this peer says so. */
            is_done = 1;
        if (is_done) {
            requests[i] = MPI_REQUEST_NULL;
            return i;
        }
    }
    return -1;
}

int workers_mail_has_room(const struct workers_mail *mail)
{
    return mail->parent < 0 || (int64_t)mail->open.bytes < mail->piece_bytes;
}

int workers_mail_flush(struct workers_mail *mail, double rate)
{
    if (workers_piece_is_empty(&mail->open) ||
        (!mail->open.is_urgent && (int64_t)mail->open.bytes < mail->piece_bytes))
        return MPI_SUCCESS;
    int at = free_request(mail->sending, WINDOW);
    if (at < 0)
        return MPI_SUCCESS;
    if (mail->open.bytes > INT_MAX) {
        fprintf(stderr,
                "causeway_workers: %zu bytes of results of one block or of one sum; MPI sends less than "
                "2 GB at once\n",
                mail->open.bytes);
        MPI_Abort(mail->comm, 1);
    }
    struct workers_piece piece = mail->open;
    mail->open = mail->sent[at];
    mail->open.bytes = mail->open.is_urgent = 0;
    mail->sent[at] = piece;
    struct workers_piece_head head = {rate};
    memcpy(piece.data, &head, sizeof head);
    mail->messages_sent++;
    return MPI_Issend(piece.data, (int)piece.bytes, MPI_BYTE, mail->parent, TAG_REPORT, mail->comm,
                      mail->sending + at);
}

int workers_mail_order(struct workers_mail *mail, int child, int rank, const struct workers_order *order)
{
    MPI_Request *requests = mail->ordering + child * ORDERS;
    int at = free_request(requests, ORDERS);
    if (at < 0) {
        int status = MPI_Wait(requests, MPI_STATUS_IGNORE);
        if (status)
            return status;
        at = 0;
    }
    struct workers_order *kept = mail->orders + child * ORDERS + at;
    *kept = *order;
    mail->messages_sent++;
    return MPI_Isend(kept, sizeof *kept, MPI_BYTE, rank, TAG_ORDER, mail->comm, requests + at);
}

int workers_mail_take_order(struct workers_mail *mail, struct workers_order *order, int *is_there)
{
    *is_there = 0;
    if (mail->parent < 0)
        return MPI_SUCCESS;
    int status = MPI_Iprobe(mail->parent, TAG_ORDER, mail->comm, is_there, MPI_STATUS_IGNORE);
    if (status || !*is_there)
        return status;
    mail->messages_received++;
    return MPI_Recv(order, sizeof *order, MPI_BYTE, mail->parent, TAG_ORDER, mail->comm, MPI_STATUS_IGNORE);
}

/* Looks for a report. MPIs that live on when a rank has died (ULFM) give an error for a look at all ranks,
 * from then on, and for a look at that rank. */
static int look(struct workers_mail *mail, const int *ranks, const char *is_gone, int *is_there,
                MPI_Status *found, int *source)
{
    int status = MPI_SUCCESS;
    *is_there = 0;
    if (!mail->is_wary)
        mail->is_wary = MPI_Iprobe(MPI_ANY_SOURCE, TAG_REPORT, mail->comm, is_there, found) != MPI_SUCCESS;
    for (int i = 0; mail->is_wary && i < mail->children && !status && !*is_there; i++) {
        *source = ranks[i];
        *is_there = 0;
        if (!is_gone[i + 1])
            status = MPI_Iprobe(ranks[i], TAG_REPORT, mail->comm, is_there, found);
    }
    if (*is_there)
        *source = found->MPI_SOURCE;
    return status;
}

int workers_mail_take_report(struct workers_mail *mail, const int *ranks, const char *is_gone, int *source,
                             const char **data, size_t *bytes)
{
    MPI_Status found;
    int is_there, count = 0;
    *bytes = 0;
    *source = -1;
    int status = look(mail, ranks, is_gone, &is_there, &found, source);
    if (status || !is_there)
        return status;
    MPI_Get_count(&found, MPI_BYTE, &count);
    if ((size_t)count > mail->received_room) {
        free(mail->received);
        mail->received = workers_new(count);
        mail->received_room = count;
    }
    status = MPI_Recv(mail->received, count, MPI_BYTE, *source, TAG_REPORT, mail->comm, MPI_STATUS_IGNORE);
    if (status)
        return status;
    mail->messages_received++;
    *data = mail->received;
    *bytes = count;
    return MPI_SUCCESS;
}

int workers_mail_is_sent(struct workers_mail *mail, int *is_sent)
{
    int status = MPI_Testall(WINDOW, mail->sending, is_sent, MPI_STATUSES_IGNORE), is_ordered = 1;
    if (!status && mail->children)
        status = MPI_Testall(mail->children * ORDERS, mail->ordering, &is_ordered, MPI_STATUSES_IGNORE);
    *is_sent &= is_ordered;
    return status;
}

void workers_mail_close(struct workers_mail *mail)
{
    int is_sent = 0, is_under_way = 0;
    /* Memory that MPI may still read is left to it: a rank that does not answer never takes its order. */
    is_under_way = workers_mail_is_sent(mail, &is_sent) != MPI_SUCCESS || !is_sent;
    free(mail->received);
    if (is_under_way)
        return;
    free(mail->open.data);
    for (int i = 0; i < WINDOW; i++)
        free(mail->sent[i].data);
    free(mail->orders);
    free(mail->ordering);
}
