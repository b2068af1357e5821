#include "../causeway_workers.h"

#include "links.h"
#include "memory.h"
#include "node.h"
#include "topology.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One boss is enough while ranks of other groups would take no more than this share of its time: a boss more
 * is a hop more. README.md has the arithmetic. */
#define FLAT_BUSY 0.05
/* MPI counts bytes of a message in an int. */
#define MOST_BYTES (INT64_C(1) << 30)

static char error[WORKERS_TEXT_BYTES];

const char *causeway_workers_error(void) { return error; }

void causeway_workers_init(struct causeway_workers *job)
{
    *job = (struct causeway_workers){.color = -1, .attempts = 3, .progress = -1, .piece_bytes = 256 * 1024};
}

int64_t causeway_workers_job_bytes(void) { return sizeof(struct causeway_workers); }

void causeway_workers_lists_free(struct causeway_workers_lists *lists)
{
    free(lists->offsets);
    free(lists->data);
    lists->offsets = NULL;
    lists->data = NULL;
}

/* A number that tells texts of bytes apart (FNV-1a). */
static int64_t hash(const unsigned char *bytes, int64_t count)
{
    uint64_t found = UINT64_C(14695981039346656037);
    for (int64_t i = 0; bytes && i < count; i++)
        found = (found ^ bytes[i]) * UINT64_C(1099511628211);
    return (int64_t)(found >> 2);
}

/* Looks at the job's parameters, those of all ranks; every rank finds the same mistake. */
static int check(MPI_Comm comm, const struct causeway_workers *job)
{
    enum { PARAMETERS = 7 };
    static const char *const names[PARAMETERS] = {"items",
                                                  "result_bytes",
                                                  "has_lists",
                                                  "sum_bytes",
                                                  "whether there is a compute function",
                                                  "whether there is a combine function",
                                                  "the bytes of sum_start"};
    int64_t own[PARAMETERS] = {job->items,
                               job->result_bytes,
                               job->has_lists != 0,
                               job->sum_bytes,
                               job->compute != NULL,
                               job->combine != NULL,
                               hash(job->sum_start, job->sum_bytes)};
    int64_t most[2 * PARAMETERS], both[2 * PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++) {
        both[i] = own[i];
        both[PARAMETERS + i] = -own[i];
    }
    if (MPI_Allreduce(both, most, 2 * PARAMETERS, MPI_INT64_T, MPI_MAX, comm))
        return CAUSEWAY_WORKERS_MPI;
    for (int i = 0; i < PARAMETERS; i++)
        if (most[i] != -most[PARAMETERS + i]) {
            snprintf(error, sizeof error, "%s differs between ranks: from %" PRId64 " to %" PRId64, names[i],
                     -most[PARAMETERS + i], most[i]);
            return CAUSEWAY_WORKERS_PARAMETER;
        }
    if (job->items == 0) {
        snprintf(error, sizeof error, "there are no items");
        return CAUSEWAY_WORKERS_NO_ITEMS;
    }
    const char *wrong = job->items < 0  ? "items is negative"
                        : !job->compute ? "there is no compute function"
                        : job->result_bytes < 0 || job->sum_bytes < 0
                            ? "result_bytes or sum_bytes is negative"
                        : job->result_bytes > MOST_BYTES || job->sum_bytes > MOST_BYTES
                            ? "result_bytes or sum_bytes is above 1 GB"
                        : job->sum_bytes && !job->combine ? "sum_bytes is given without a combine function"
                                                          : NULL;
    if (!wrong)
        return CAUSEWAY_WORKERS_OK;
    snprintf(error, sizeof error, "%s", wrong);
    return CAUSEWAY_WORKERS_PARAMETER;
}

/* What rank 0 tells all. */
struct agreement {
    int status, asks_mpi;
    char error[WORKERS_TEXT_BYTES];
    struct workers_settings settings;
};

/* Rank 0 reads the settings, and the groups where they are given. */
static void decide_how(const struct causeway_workers *job, const int *colors, struct agreement *agreed,
                       struct workers_tree *tree)
{
    const struct workers_settings *settings = &agreed->settings;
    const char *wrong = NULL;
    int has_colors = 1;
    for (int i = 0; i < tree->ranks; i++)
        has_colors &= colors[i] >= 0;
    if (!workers_settings_read(&agreed->settings, job, agreed->error))
        agreed->status = CAUSEWAY_WORKERS_PARAMETER;
    /* A program may use the library with one rank, too, to compare; groups are not for that. */
    else if (settings->groups[0] && tree->ranks > 1)
        wrong = workers_tree_read(tree, settings->groups);
    else if (has_colors)
        workers_tree_level(tree, colors);
    else
        agreed->asks_mpi = 1;
    if (wrong) {
        snprintf(agreed->error, sizeof agreed->error, "%s", wrong);
        agreed->status = CAUSEWAY_WORKERS_GROUPS;
    }
    if (!agreed->status && settings->block_items * job->result_bytes > MOST_BYTES) {
        snprintf(agreed->error, sizeof agreed->error,
                 "a block of %" PRId64 " items has more than 1 GB of results", settings->block_items);
        agreed->status = CAUSEWAY_WORKERS_PARAMETER;
    }
}

/* All ranks get rank 0's settings and groups. */
static int agree(MPI_Comm comm, const struct causeway_workers *job, struct workers_settings *settings,
                 struct workers_tree *tree)
{
    struct agreement agreed = {0};
    int rank, *colors = workers_new(sizeof(int) * tree->ranks);
    MPI_Comm_rank(comm, &rank);
    MPI_Gather(&job->color, 1, MPI_INT, colors, 1, MPI_INT, 0, comm);
    if (rank == 0)
        decide_how(job, colors, &agreed, tree);
    free(colors);
    MPI_Bcast(&agreed, sizeof agreed, MPI_BYTE, 0, comm);
    *settings = agreed.settings;
    if (agreed.status) {
        snprintf(error, sizeof error, "%s", agreed.error);
        return agreed.status;
    }
    if (agreed.asks_mpi)
        workers_topology_read(comm, settings, tree);
    MPI_Bcast(&tree->levels, 1, MPI_INT, 0, comm);
    MPI_Bcast(tree->colors, WORKERS_LEVELS * tree->ranks, MPI_INT, 0, comm);
    return CAUSEWAY_WORKERS_OK;
}

/* The share of its time that rank 0 would spend, as the only boss, on ranks that otherwise have another. */
static double extra_busy(struct workers_tree *tree, const double *round_trips)
{
    double busy = 0, message = workers_links_message_seconds(round_trips, tree->ranks - 1);
    workers_tree_grow(tree, 0);
    for (int rank = 1; rank < tree->ranks; rank++)
        if (tree->parents[rank] > 0)
            busy += workers_links_busy(message, round_trips[rank - 1]);
    return busy;
}

/* Rank 0 decides between one boss and a boss a group, by round trips that are measured with all ranks. */
static int decide(MPI_Comm comm, struct workers_tree *tree, double *round_trips, int *shape)
{
    int rank, *others = workers_new(sizeof(int) * tree->ranks);
    MPI_Comm_rank(comm, &rank);
    for (int i = 1; i < tree->ranks; i++)
        others[i - 1] = i;
    int status = workers_links_measure(comm, rank ? 0 : -1, others, rank ? 0 : tree->ranks - 1, round_trips);
    free(others);
    *shape = CAUSEWAY_WORKERS_FLAT;
    if (rank == 0 && !status && extra_busy(tree, round_trips) > FLAT_BUSY)
        *shape = CAUSEWAY_WORKERS_HIERARCHICAL;
    return status ? status : MPI_Bcast(shape, 1, MPI_INT, 0, comm);
}

/* Makes the tree of bosses, and measures its links. */
static int grow(MPI_Comm comm, const struct workers_settings *settings, struct workers_tree *tree,
                double *round_trips, double *message_seconds)
{
    int rank, status = MPI_SUCCESS, *children = workers_new(sizeof(int) * tree->ranks),
              shape = settings->shape;
    MPI_Comm_rank(comm, &rank);
    if (workers_tree_groups(tree) < 2 && tree->levels < 2)
        shape = CAUSEWAY_WORKERS_FLAT;
    int is_decided = shape == CAUSEWAY_WORKERS_SHAPE_AUTO;
    if (is_decided)
        status = decide(comm, tree, round_trips, &shape);
    workers_tree_grow(tree, shape == CAUSEWAY_WORKERS_FLAT);
    int count = workers_node_children(tree, rank, children);
    /* With one boss, what it measured to decide that is what it needs. */
    if (!status && !(is_decided && shape == CAUSEWAY_WORKERS_FLAT))
        status = workers_links_measure(comm, tree->parents[rank], children, count, round_trips);
    *message_seconds = workers_links_message_seconds(round_trips, count);
    free(children);
    return status ? CAUSEWAY_WORKERS_MPI : CAUSEWAY_WORKERS_OK;
}

/* The sentence of an end that is not good, and the numbers of the run. */
static void report(struct causeway_workers *job, const struct workers_node *node, int status)
{
    const struct workers_failure *failure = &node->failure;
    if (status == CAUSEWAY_WORKERS_FAILED)
        snprintf(error, sizeof error,
                 "item %" PRId64 " failed each time, last with code %" PRId64 " at rank %" PRId64,
                 failure->item, failure->code, failure->rank);
    if (status == CAUSEWAY_WORKERS_SILENT)
        snprintf(error, sizeof error, "all results are there, but some ranks do not answer: %" PRId64,
                 node->silent);
    job->messages_received = node->mail.messages_received;
    job->messages_sent = node->mail.messages_sent;
    job->messages_far = node->messages_far;
    job->largest_message = (int64_t)node->mail.received_room;
    job->retries = workers_schedule_retries(node->schedule);
    job->copies = workers_schedule_copies(node->schedule);
    job->children = node->children;
}

static int work(MPI_Comm comm, struct causeway_workers *job, const struct workers_settings *settings,
                struct workers_tree *tree)
{
    double *round_trips = workers_new(sizeof(double) * tree->ranks), message_seconds;
    int status = grow(comm, settings, tree, round_trips, &message_seconds);
    if (!status) {
        struct workers_node node;
        workers_node_open(&node, comm, job, settings, tree, message_seconds, round_trips);
        status = workers_node_run(&node);
        report(job, &node, status);
        for (int i = 0; i < tree->ranks; i++)
            job->is_hierarchical |= tree->parents[i] > 0;
        workers_node_close(&node);
    }
    free(round_trips);
    return status;
}

int causeway_workers_run(MPI_Comm comm, struct causeway_workers *job)
{
    MPI_Comm own;
    int ranks, status;
    struct workers_settings settings;
    error[0] = 0;
    job->is_hierarchical = 0;
    job->children = 0;
    job->messages_received = job->messages_sent = job->messages_far = job->retries = job->copies = 0;
    if (MPI_Comm_dup(comm, &own)) {
        snprintf(error, sizeof error, "the MPI could not duplicate the communicator");
        return CAUSEWAY_WORKERS_MPI;
    }
    MPI_Comm_size(own, &ranks);
    struct workers_tree *tree = workers_tree_new(ranks);
    status = check(own, job);
    if (!status)
        status = agree(own, job, &settings, tree);
    /* Until here errors of the MPI are handled as the caller wants them. From here on ranks work around those
     * that others are lost by. */
    if (!status && MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN))
        status = CAUSEWAY_WORKERS_MPI;
    if (!status)
        status = work(own, job, &settings, tree);
    if (status == CAUSEWAY_WORKERS_MPI)
        snprintf(error, sizeof error, "the MPI gave an error in a message to another rank");
    workers_tree_free(tree);
    /* Others may still have messages in it that a silent rank has not taken. */
    if (status != CAUSEWAY_WORKERS_SILENT && status != CAUSEWAY_WORKERS_MPI)
        MPI_Comm_free(&own);
    return status;
}

int causeway_workers_run_fortran(MPI_Fint comm, struct causeway_workers *job)
{
    return causeway_workers_run(MPI_Comm_f2c(comm), job);
}
