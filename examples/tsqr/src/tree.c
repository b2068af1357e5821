#include "tree.h"

#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 1

/* Adds the edges of one rank in a binomial tree over members, whose first is the root. */
static void add_edges(causeway_tsqr_tree *tree, const int *members, int count)
{
    int own = 0;
    while (own < count && members[own] != tree->rank)
        own++;
    if (own == count)
        return;
    for (int step = 1; step < count; step *= 2) {
        if (own & step) {
            tree->parent = members[own - step];
            return;
        }
        if (own + step < count)
            tree->children[tree->child_count++] = members[own + step];
    }
}

static void lay_out(causeway_tsqr_tree *tree, int *members)
{
    int count = 0, leaders = 0;
    tree->parent = -1;
    for (int i = 0; i < tree->ranks; i++)
        if (tree->site[i] == tree->site[tree->rank])
            members[count++] = i;
    add_edges(tree, members, count);
    for (int i = 0; i < tree->ranks; i++)
        if (tree->site[i] == leaders)
            members[leaders++] = i;
    add_edges(tree, members, leaders);
}

int causeway_tsqr_open(MPI_Comm comm, causeway_tsqr_tree **made)
{
    *made = NULL;
    causeway_tsqr_tree *tree = calloc(1, sizeof *tree);
    int *members = NULL;
    int is_ready = 0, are_all_ready;
    if (tree) {
        MPI_Comm_rank(comm, &tree->rank);
        MPI_Comm_size(comm, &tree->ranks);
        tree->culprit = -1;
        tree->site = calloc((size_t)tree->ranks, sizeof(int));
        tree->children = calloc((size_t)tree->ranks, sizeof(int));
        tree->is_waiting = calloc((size_t)tree->ranks, sizeof(int));
        members = calloc((size_t)tree->ranks, sizeof(int));
        is_ready = tree->site && tree->children && tree->is_waiting && members;
    }
    /* 2 where all is well, 1 where the list of groups is wrong, 0 without memory. */
    if (is_ready) {
        tree->sites = tsqr_topology_read(comm, tree->site);
        is_ready = tree->sites < 0 ? 0 : tree->sites == 0 ? 1 : 2;
    }
    MPI_Allreduce(&is_ready, &are_all_ready, 1, MPI_INT, MPI_MIN, comm);
    if (are_all_ready == 2) {
        lay_out(tree, members);
        MPI_Comm_dup(comm, &tree->comm);
        *made = tree;
    } else if (tree) {
        free(tree->site);
        free(tree->children);
        free(tree->is_waiting);
        free(tree);
    }
    free(members);
    return are_all_ready == 2   ? CAUSEWAY_TSQR_OK
           : are_all_ready == 1 ? CAUSEWAY_TSQR_GROUPS
                                : CAUSEWAY_TSQR_MEMORY;
}

void causeway_tsqr_close(causeway_tsqr_tree *tree)
{
    if (!tree)
        return;
    MPI_Comm_free(&tree->comm);
    free(tree->site);
    free(tree->children);
    free(tree->is_waiting);
    free(tree);
}

int causeway_tsqr_sites(const causeway_tsqr_tree *tree) { return tree->sites; }

int causeway_tsqr_culprit(const causeway_tsqr_tree *tree) { return tree->culprit; }

void causeway_tsqr_count(const causeway_tsqr_tree *tree, struct causeway_tsqr_counts *counts)
{
    *counts = tree->counts;
}

const char *causeway_tsqr_sentence(int status)
{
    static const char *const sentences[] = {
        "all is well",
        "an argument is out of its range, or a pointer is missing",
        "ranks said different types, columns or flags",
        "all ranks together have fewer rows than columns",
        "the matrix has a NaN or an infinity",
        "the matrix is finite, but R overflows",
        "there is no memory left",
        "CAUSEWAY_TSQR_GROUPS is no list of sizes, such as 2,3, that add up to all ranks",
    };
    int is_known = status >= 0 && status < (int)(sizeof sentences / sizeof *sentences);
    return is_known ? sentences[status] : "there is no such status";
}

void tsqr_blame(struct tsqr_head *head, int status, int culprit)
{
    if (head->status == CAUSEWAY_TSQR_OK && status != CAUSEWAY_TSQR_OK) {
        head->status = status;
        head->culprit = culprit;
    }
}

void tsqr_send(causeway_tsqr_tree *tree, int to, struct tsqr_head *head, const void *values, size_t bytes)
{
    char *message = bytes > 0 ? malloc(sizeof *head + bytes) : NULL;
    size_t length = sizeof *head + (message ? bytes : 0);
    if (bytes > 0 && !message)
        tsqr_blame(head, CAUSEWAY_TSQR_MEMORY, tree->rank);
    if (message) {
        memcpy(message, head, sizeof *head);
        memcpy(message + sizeof *head, values, bytes);
    }
    MPI_Send(message ? (void *)message : head, (int)length, MPI_BYTE, to, TAG, tree->comm);
    int is_far = tree->site[to] != tree->site[tree->rank];
    *(is_far ? &tree->counts.messages_far : &tree->counts.messages_near) += 1;
    *(is_far ? &tree->counts.bytes_far : &tree->counts.bytes_near) += (int64_t)length;
    free(message);
}

void *tsqr_receive(causeway_tsqr_tree *tree, int from, struct tsqr_head *head, size_t *bytes)
{
    MPI_Status status;
    int length;
    MPI_Probe(from, TAG, tree->comm, &status);
    MPI_Get_count(&status, MPI_BYTE, &length);
    char *message = malloc((size_t)length);
    if (!message) {
        fprintf(stderr, "causeway_tsqr: rank %d: no memory for a message of %d bytes\n", tree->rank, length);
        MPI_Abort(tree->comm, 1);
        exit(1);
    }
    MPI_Recv(message, length, MPI_BYTE, from, TAG, tree->comm, MPI_STATUS_IGNORE);
    memcpy(head, message, sizeof *head);
    *bytes = (size_t)length - sizeof *head;
    if (*bytes > 0) {
        memmove(message, message + sizeof *head, *bytes);
        return message;
    }
    free(message);
    return NULL;
}
