#include "tree.h"

#include "links.h"
#include "site_tree.h"
#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 1
/* The width that Coti et al. (2011) measured. */
#define USUAL_COLUMNS 64

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

/* The parent and the children of a site's first rank, over sites. */
static void join_sites(causeway_tsqr_tree *tree, const struct tsqr_site_tree *site_tree, const int *leaders)
{
    int own = tree->site[tree->rank];
    if (leaders[own] != tree->rank)
        return;
    if (site_tree->parent[own] >= 0)
        tree->parent = leaders[site_tree->parent[own]];
    for (int i = 0; i < tree->sites; i++)
        if (site_tree->parent[site_tree->order[i]] == own)
            tree->children[tree->child_count++] = leaders[site_tree->order[i]];
}

/* Rank 0 decides and tells all: links look a little different from either end. */
static void lay_out_by_links(causeway_tsqr_tree *tree, const int *leaders, int columns)
{
    struct tsqr_site_tree site_tree;
    double seconds[TSQR_MOST_MEASURED_SITES * TSQR_MOST_MEASURED_SITES];
    tsqr_site_tree_binomial(tree->sites, &site_tree);
    if (leaders[tree->site[tree->rank]] == tree->rank)
        tsqr_links_measure(tree->comm, leaders, tree->sites, seconds);
    if (tree->rank == 0)
        tsqr_site_tree_make(tree->sites, seconds, tsqr_site_tree_merge_seconds(columns), &site_tree);
    MPI_Bcast(&site_tree, sizeof site_tree, MPI_BYTE, 0, tree->comm);
    join_sites(tree, &site_tree, leaders);
}

static void lay_out(causeway_tsqr_tree *tree, int *members, int columns, int by_links)
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
    /* Two sites have one tree, whatever is between them. */
    if (by_links && leaders > 2 && leaders <= TSQR_MOST_MEASURED_SITES)
        lay_out_by_links(tree, members, columns);
    else
        add_edges(tree, members, leaders);
}

/* 1 for links, 0 for the binomial tree, -1 for what there is not. */
static int wants_links(void)
{
    const char *said = getenv("CAUSEWAY_TSQR_TREE");
    return !said || !*said || !strcmp(said, "links") ? 1 : !strcmp(said, "binomial") ? 0 : -1;
}

static void release(causeway_tsqr_tree *tree)
{
    if (!tree)
        return;
    free(tree->site);
    free(tree->children);
    free(tree->is_waiting);
    free(tree);
}

/* What a rank found when it got ready, from the worst. */
enum { NO_MEMORY, WRONG_GROUPS, WRONG_TREE, WRONG_COLUMNS, READY };

static causeway_tsqr_tree *tree_new(MPI_Comm comm, int *found)
{
    causeway_tsqr_tree *tree = calloc(1, sizeof *tree);
    *found = NO_MEMORY;
    if (!tree)
        return NULL;
    MPI_Comm_rank(comm, &tree->rank);
    MPI_Comm_size(comm, &tree->ranks);
    tree->culprit = -1;
    tree->site = calloc((size_t)tree->ranks, sizeof(int));
    tree->children = calloc((size_t)tree->ranks, sizeof(int));
    tree->is_waiting = calloc((size_t)tree->ranks, sizeof(int));
    if (tree->site && tree->children && tree->is_waiting) {
        tree->sites = tsqr_topology_read(comm, tree->site);
        *found = tree->sites < 0     ? NO_MEMORY
                 : tree->sites == 0  ? WRONG_GROUPS
                 : wants_links() < 0 ? WRONG_TREE
                                     : READY;
    }
    return tree;
}

int causeway_tsqr_open(MPI_Comm comm, causeway_tsqr_tree **made)
{
    return causeway_tsqr_open_for(comm, USUAL_COLUMNS, made);
}

int causeway_tsqr_open_for(MPI_Comm comm, int columns, causeway_tsqr_tree **made)
{
    static const int statuses[] = {CAUSEWAY_TSQR_MEMORY, CAUSEWAY_TSQR_GROUPS, CAUSEWAY_TSQR_TREE,
                                   CAUSEWAY_TSQR_ARGUMENT};
    /* Where one rank wants the binomial tree, all have it. */
    int own[2], least[2];
    causeway_tsqr_tree *tree = tree_new(comm, &own[0]);
    int *members = tree ? calloc((size_t)tree->ranks, sizeof(int)) : NULL;
    int is_width = columns >= 1 && columns <= CAUSEWAY_TSQR_MOST_COLUMNS;
    own[0] = !members ? NO_MEMORY : own[0] == READY && !is_width ? WRONG_COLUMNS : own[0];
    own[1] = wants_links();
    *made = NULL;
    MPI_Allreduce(own, least, 2, MPI_INT, MPI_MIN, comm);
    if (least[0] == READY) {
        MPI_Comm_dup(comm, &tree->comm);
        lay_out(tree, members, columns, least[1] == 1);
        *made = tree;
    } else {
        release(tree);
    }
    free(members);
    return least[0] == READY ? CAUSEWAY_TSQR_OK : statuses[least[0]];
}

int causeway_tsqr_open_fortran(MPI_Fint comm, int columns, causeway_tsqr_tree **made)
{
    return causeway_tsqr_open_for(MPI_Comm_f2c(comm), columns, made);
}

void causeway_tsqr_close(causeway_tsqr_tree *tree)
{
    if (!tree)
        return;
    MPI_Comm_free(&tree->comm);
    release(tree);
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
        "CAUSEWAY_TSQR_TREE is neither links nor binomial",
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
