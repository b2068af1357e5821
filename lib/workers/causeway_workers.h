/* A list of items that many ranks compute, with a boss at each site: hierarchical master and workers for MPI
 * programs. README.md says how to begin. All ranks of a communicator make the same call; results are at its
 * rank 0, and are the same bits however many ranks there are.
 *
 *     static int square(const struct causeway_workers_item *item, void *context)
 *     {
 *         *(double *)item->result = (double)item->index * item->index;
 *         return 0;
 *     }
 *
 *     struct causeway_workers job;
 *     causeway_workers_init(&job);
 *     job.items = 1000000;
 *     job.compute = square;
 *     job.result_bytes = sizeof(double);
 *     job.results = rank == 0 ? malloc(1000000 * sizeof(double)) : NULL;
 *     if (causeway_workers_run(MPI_COMM_WORLD, &job) != CAUSEWAY_WORKERS_OK)
 *         fprintf(stderr, "%s\n", causeway_workers_error()); */
#ifndef CAUSEWAY_WORKERS_H
#define CAUSEWAY_WORKERS_H

#include <mpi.h>
#include <stdint.h>

/* The answers of causeway_workers_run, alike at all ranks; causeway_workers_error() has the sentence. */
#define CAUSEWAY_WORKERS_OK 0
#define CAUSEWAY_WORKERS_NO_ITEMS 1
/* A parameter is wrong, or not alike at all ranks. */
#define CAUSEWAY_WORKERS_PARAMETER 2
#define CAUSEWAY_WORKERS_GROUPS 3
/* compute() returned an error for one item, again and again. */
#define CAUSEWAY_WORKERS_FAILED 4
/* All results are there, but a rank did not answer for patience_seconds. Write them, then call MPI_Abort: the
 * MPI's own end would wait for that rank. Launchers may lose what was printed right before (MPICH 4.0.2 did
 * in 4 of 176 runs). Ranks that did answer may see CAUSEWAY_WORKERS_OK. */
#define CAUSEWAY_WORKERS_SILENT 5
/* The MPI gave an error that no rank can work around. */
#define CAUSEWAY_WORKERS_MPI 6

/* What compute() gets for one item. */
struct causeway_workers_item {
    int64_t index;
    /* result_bytes zeros, to be filled; NULL without result_bytes. */
    void *result;
    /* sum_bytes to add to: it has the items of the block before this one. NULL without sum_bytes. */
    void *sum;
    /* For causeway_workers_append. */
    void *list;
};

/* Computes one item. Not 0 means failure: the chunk is given to another rank. For the same item it must write
 * the same bits whichever rank computes it. It may not communicate over the job's communicator. */
typedef int causeway_workers_compute(const struct causeway_workers_item *item, void *context);

/* Appends bytes to an item's list, its result of variable size. For jobs with has_lists. */
void causeway_workers_append(const struct causeway_workers_item *item, const void *data, int64_t bytes);

/* Adds the sum of later items to that of earlier ones: into = into + later. */
typedef void causeway_workers_combine(void *into, const void *later, void *context);

/* Gets results of items first to first + count - 1, at rank 0, as they arrive: every item once, in any order.
 * list_bytes[i] is the size of an item's list; the lists follow each other in `lists`. What is not part of
 * the job is NULL. The memory lasts until it returns. */
typedef void causeway_workers_collect(int64_t first, int64_t count, const void *results,
                                      const int64_t *list_bytes, const void *lists, void *context);

/* Every item's list, at rank 0: that of item i is data[offsets[i]] to data[offsets[i + 1] - 1]. */
struct causeway_workers_lists {
    int64_t *offsets;
    char *data;
};

struct causeway_workers {
    /* What to compute: alike at all ranks. compute and context are each rank's own. */
    int64_t items;
    causeway_workers_compute *compute;
    void *context;
    /* Bytes of each item's result, or 0. */
    int64_t result_bytes;
    /* Whether items have lists. */
    int has_lists;
    /* Bytes of the sum over all items, or 0; combine is then needed. The sum of each block begins with
     * sum_start, or with zeros where that is NULL: what changes nothing when it is added. */
    int64_t sum_bytes;
    causeway_workers_combine *combine;
    const void *sum_start;

    /* Where results go, at rank 0; each may be NULL. items * result_bytes: */
    void *results;
    void *sum;
    struct causeway_workers_lists *lists;
    causeway_workers_collect *collect;

    /* How: alike at all ranks. Environment variables of README.md win over these. */
    /* Items of a block, the smallest chunk; the order of a sum follows from it and from items alone. 0: by
     * items. */
    int64_t block_items;
    /* "4,4": the first four ranks are one group, the next four another. "2+2,4": the first group has two of
     * its own. NULL: by color, or as the MPI says (docs/topology.md). */
    const char *groups;
    /* At least 0 at all ranks: ranks of one colour are one group, as for MPI_Comm_split. */
    int color;
    int shape;
    int boss;
    /* How often a chunk may fail at one boss. */
    int attempts;
    /* A chunk that is not done after so long is given to another rank as soon as one is idle, whatever was
     * expected of it. 0: what is expected decides. */
    double deadline_seconds;
    /* How long to wait at the end for ranks that do not answer. 0: for ever. */
    double patience_seconds;
    /* Results travel in pieces of about this size. */
    int64_t piece_bytes;
    /* A line on standard error: 1 yes, 0 no, -1 where that is a terminal. */
    int progress;

    /* What happened, at rank 0. */
    int64_t messages_received, messages_sent;
    /* Messages of both kinds that were exchanged with ranks of other groups. */
    int64_t messages_far;
    /* Bytes of the largest that came. */
    int64_t largest_message;
    /* Chunks that failed, and chunks that were given to one more rank, here. */
    int64_t retries, copies;
    /* Ranks that rank 0 gives chunks to, and whether there are other bosses. */
    int children, is_hierarchical;
};

#define CAUSEWAY_WORKERS_SHAPE_AUTO 0
#define CAUSEWAY_WORKERS_FLAT 1
#define CAUSEWAY_WORKERS_HIERARCHICAL 2

/* Whether bosses compute between messages: by the number of ranks they serve, always, never. */
#define CAUSEWAY_WORKERS_BOSS_AUTO 0
#define CAUSEWAY_WORKERS_BOSS_COMPUTES 1
#define CAUSEWAY_WORKERS_BOSS_SERVES 2

void causeway_workers_init(struct causeway_workers *job);

/* All ranks of the communicator call it, between MPI_Init and MPI_Finalize; MPI_THREAD_SINGLE is enough. */
int causeway_workers_run(MPI_Comm comm, struct causeway_workers *job);

/* The same for a communicator of Fortran, or of mpi4py's py2f(). */
int causeway_workers_run_fortran(MPI_Fint comm, struct causeway_workers *job);

/* Says why the last run at this rank did not return CAUSEWAY_WORKERS_OK. */
const char *causeway_workers_error(void);

/* sizeof(struct causeway_workers): bindings of other languages check theirs against it. */
int64_t causeway_workers_job_bytes(void);

void causeway_workers_lists_free(struct causeway_workers_lists *lists);

#endif
