/* check SEED CASES DIRECTORY: random jobs of the workers library on all ranks: groups, shapes, sizes of
 * blocks and pieces, costs of items. Each is compared bit by bit with the run of one rank and, item by item,
 * with what the item must give. Every fourth has trouble: items that fail the first time at each rank, an
 * item that always fails, parameters that are not alike, a rank that hangs in its first item until all
 * results are there. DIRECTORY is for files by which ranks tell each other so. `check silent 1 DIRECTORY` has
 * a rank that never comes back. */
#include "../../../lib/workers/causeway_workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_ITEMS 1500
#define RESULT_BYTES 12
#define HANG_SECONDS 30

enum trouble { NONE, FAIL_ONCE, FAIL_ALWAYS, UNLIKE, HANG, TROUBLES };
static const char *const troubles[TROUBLES] = {"none", "items fail once", "an item fails always",
                                               "unlike sizes", "a rank hangs"};

static int rank, ranks;
static uint64_t state, seed;
/* Files that say: a rank hangs; all results are there. */
static char hangs[300], there[300];

/* What a job's function knows. */
struct work {
    enum trouble trouble;
    int64_t bad_item, items, collected;
    int has_begun, failures;
    unsigned char failed[MOST_ITEMS];
};

static uint64_t mix(uint64_t n)
{
    n = (n ^ n >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    n = (n ^ n >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return n ^ n >> 32;
}

static int below(int bound)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % bound);
}

static _Noreturn void wrong(const char *what)
{
    fprintf(stderr, "check: seed %" PRIu64 ", %d ranks, at rank %d: %s %s\n", seed, ranks, rank, what,
            causeway_workers_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* A barrier that leaves the cores to others: an MPI's own may spin. */
static void meet(void)
{
    MPI_Request request;
    int is_over = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!is_over) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
    }
}

static void wait_for(const char *mark, const char *what)
{
    for (time_t end = time(NULL) + HANG_SECONDS; access(mark, F_OK) != 0;) {
        if (time(NULL) > end)
            wrong(what);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* The last rank hangs in its first item until others have done it; these begin when it hangs. */
static void hang(struct work *work)
{
    if (work->has_begun)
        return;
    work->has_begun = 1;
    if (rank == ranks - 1) {
        fclose(fopen(hangs, "w"));
        wait_for(there, "nobody else has done in 30 s what the rank that hangs has;");
    } else {
        wait_for(hangs, "the rank that should hang gets nothing to do in 30 s;");
    }
}

static void spend(int64_t item)
{
    double end = MPI_Wtime() + (double)(mix(item + seed) % 100) * 1e-6;
    while (mix(item) % 8 == 0 && MPI_Wtime() < end)
        ;
}

static int64_t list_of(int64_t item, unsigned char *list)
{
    int64_t bytes = mix(item + 7) % 4 ? 0 : mix(item + 9) % 40;
    for (int64_t i = 0; i < bytes; i++)
        list[i] = (unsigned char)mix(item * 41 + i);
    return bytes;
}

static void result_of(int64_t item, unsigned char *result)
{
    for (int i = 0; i < RESULT_BYTES; i++)
        result[i] = (unsigned char)mix(item * 13 + i);
}

static int compute(const struct causeway_workers_item *item, void *context)
{
    struct work *work = context;
    unsigned char list[40];
    if (work->trouble == FAIL_ALWAYS && item->index == work->bad_item)
        return 42;
    if (work->trouble == FAIL_ONCE && mix(item->index) % 16 == 0 && !work->failed[item->index]) {
        work->failed[item->index] = 1;
        work->failures++;
        return 1;
    }
    if (work->trouble == HANG)
        hang(work);
    spend(item->index);
    result_of(item->index, item->result);
    int64_t bytes = list_of(item->index, list);
    causeway_workers_append(item, list, bytes / 2);
    causeway_workers_append(item, list + bytes / 2, bytes - bytes / 2);
    double *sum = item->sum;
    sum[0] += (double)mix(item->index) / 3e19 - 0.3;
    sum[1] = sum[1] * 0.99 + (double)item->index;
    return 0;
}

static void combine(void *into, const void *later, void *context)
{
    double *sum = into;
    const double *other = later;
    (void)context;
    sum[0] += other[0];
    sum[1] = sum[1] * 0.5 + other[1];
}

static void collect(int64_t first, int64_t count, const void *results, const int64_t *list_bytes,
                    const void *lists, void *context)
{
    struct work *work = context;
    (void)first, (void)results, (void)list_bytes, (void)lists;
    work->collected += count;
    /* Now the rank that hangs may go on: others have done its item. */
    if (work->trouble == HANG && work->collected == work->items)
        fclose(fopen(there, "w"));
}

/* The ranks as groups: "3,4", "2+1,4". */
static const char *draw_groups(void)
{
    static char groups[200];
    int left = ranks, at = 0, count = 1 + below(3);
    groups[0] = 0;
    for (int i = 0; left; i++) {
        int part = i >= count || left == 1 ? left : 1 + below(left);
        at += snprintf(groups + at, sizeof groups - at, "%s%d", !i ? "" : below(3) ? "," : "+", part);
        left -= part;
    }
    return below(4) ? groups : NULL;
}

static void draw_job(struct causeway_workers *job, struct work *work)
{
    causeway_workers_init(job);
    work->items = job->items = below(3) ? 1 + below(MOST_ITEMS) : 1 + below(12);
    job->compute = compute;
    job->context = work;
    job->result_bytes = RESULT_BYTES;
    job->has_lists = 1;
    job->sum_bytes = 2 * sizeof(double);
    job->combine = combine;
    static const double start[2] = {0.25, 3};
    job->sum_start = start;
    job->collect = collect;
    job->groups = draw_groups();
    job->color = below(4) ? -1 : rank % 2;
    job->shape = below(3) ? CAUSEWAY_WORKERS_HIERARCHICAL : CAUSEWAY_WORKERS_SHAPE_AUTO;
    /* Ranks wait in their items for the one that hangs; the boss must not. */
    job->boss = work->trouble == HANG ? CAUSEWAY_WORKERS_BOSS_SERVES : below(3);
    if (work->trouble == HANG) {
        job->groups = NULL;
        job->color = 0;
    }
    static const int64_t blocks[] = {0, 1, 7, 64}, pieces[] = {0, 1, 100, 4000};
    job->block_items = blocks[below(4)];
    job->piece_bytes = pieces[below(4)];
    job->attempts = work->trouble == FAIL_ONCE ? 1000 : 3;
    job->progress = 0;
}

struct outcome {
    unsigned char *results;
    double sum[2];
    struct causeway_workers_lists lists;
};

static int run(MPI_Comm comm, struct causeway_workers *job, struct work *work, struct outcome *outcome)
{
    work->collected = 0;
    memset(work->failed, 0, sizeof work->failed);
    outcome->results = calloc(job->items, RESULT_BYTES);
    job->results = outcome->results;
    job->sum = outcome->sum;
    job->lists = &outcome->lists;
    return causeway_workers_run(comm, job);
}

static void drop(struct outcome *outcome)
{
    free(outcome->results);
    causeway_workers_lists_free(&outcome->lists);
}

static void compare(const struct causeway_workers *job, const struct work *work, const struct outcome *many,
                    const struct outcome *one)
{
    if (memcmp(many->results, one->results, job->items * RESULT_BYTES) != 0)
        wrong("results differ from those of one rank");
    if (memcmp(many->sum, one->sum, sizeof many->sum) != 0)
        wrong("the sum differs from that of one rank");
    if (memcmp(many->lists.offsets, one->lists.offsets, (job->items + 1) * sizeof(int64_t)) != 0 ||
        memcmp(many->lists.data, one->lists.data, one->lists.offsets[job->items]) != 0)
        wrong("lists differ from those of one rank");
    if (work->collected != job->items)
        wrong("not every item was collected once");
    for (int64_t i = 0; i < job->items; i++) {
        unsigned char result[RESULT_BYTES], list[40];
        result_of(i, result);
        int64_t bytes = list_of(i, list), offset = many->lists.offsets[i];
        if (memcmp(result, many->results + i * RESULT_BYTES, RESULT_BYTES) != 0)
            wrong("a result is not that of its item");
        if (bytes != many->lists.offsets[i + 1] - offset ||
            memcmp(list, many->lists.data + offset, bytes) != 0)
            wrong("a list is not that of its item");
    }
}

/* A job that must end in a certain error, at all ranks alike. */
static void check_error(int status, int expected, const char *words)
{
    if (status != expected)
        wrong("the run ended otherwise than expected:");
    if (!strstr(causeway_workers_error(), words))
        wrong("the error lacks what it should say:");
}

static void check_case(enum trouble trouble)
{
    static struct work work;
    struct causeway_workers job;
    struct outcome many = {0}, one = {0};
    memset(&work, 0, sizeof work);
    work.trouble = ranks < (trouble == UNLIKE ? 2 : trouble == HANG ? 3 : 1) ? NONE : trouble;
    draw_job(&job, &work);
    work.bad_item = below((int)job.items);
    /* Nobody could hang with one item: the rank that hangs may get none. */
    if (work.trouble == HANG)
        work.items = job.items = 500;
    if (work.trouble == UNLIKE)
        job.result_bytes += rank == ranks - 1;
    unlink(hangs);
    unlink(there);
    meet();
    int status = run(MPI_COMM_WORLD, &job, &work, &many), failures = 0;
    char words[60];
    snprintf(words, sizeof words, "item %" PRId64 " failed each time, last with code 42", work.bad_item);
    if (work.trouble == UNLIKE)
        check_error(status, CAUSEWAY_WORKERS_PARAMETER, "result_bytes differs between ranks: from 12 to 13");
    else if (work.trouble == FAIL_ALWAYS)
        check_error(status, CAUSEWAY_WORKERS_FAILED, words);
    else if (status)
        wrong("the run failed:");
    MPI_Allreduce(&work.failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (work.trouble == FAIL_ONCE && job.items > 200 && !failures)
        wrong("no item failed");
    if (rank == 0 && work.trouble == HANG && !job.copies)
        wrong("no chunk was given to another rank");
    if (rank == 0 && !status) {
        int64_t collected = work.collected;
        work.trouble = NONE;
        if (run(MPI_COMM_SELF, &job, &work, &one))
            wrong("the run of one rank failed:");
        work.collected = collected;
        compare(&job, &work, &many, &one);
    }
    meet();
    drop(&many);
    drop(&one);
}

#define FLOOD_BYTES 20000
#define FLOOD_PIECE 65536

static int flood(const struct causeway_workers_item *item, void *context)
{
    static char list[FLOOD_BYTES];
    (void)context;
    causeway_workers_append(item, list, sizeof list);
    return 0;
}

static void take_slowly(int64_t first, int64_t count, const void *results, const int64_t *list_bytes,
                        const void *lists, void *context)
{
    (void)first, (void)results, (void)list_bytes, (void)lists;
    *(int64_t *)context += count;
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Results come faster than rank 0 takes them: the boss between must not pile them up. */
static void check_flood(void)
{
    struct causeway_workers job;
    char groups[20];
    int64_t collected = 0;
    causeway_workers_init(&job);
    job.items = 600;
    job.compute = flood;
    job.context = &collected;
    job.has_lists = 1;
    job.block_items = 1;
    job.collect = take_slowly;
    job.piece_bytes = FLOOD_PIECE;
    job.boss = CAUSEWAY_WORKERS_BOSS_SERVES;
    job.shape = CAUSEWAY_WORKERS_HIERARCHICAL;
    snprintf(groups, sizeof groups, "1,%d", ranks - 1);
    job.groups = groups;
    check_error(causeway_workers_run(MPI_COMM_WORLD, &job), CAUSEWAY_WORKERS_OK, "");
    /* A worker's piece, and with it a boss's, goes when it is full: by one item, or by one worker's piece. */
    if (rank == 0 && job.largest_message > 2 * (FLOOD_PIECE + FLOOD_BYTES))
        wrong("a boss has piled up results");
    if (rank == 0 && collected != job.items)
        wrong("not every list was collected once");
}

static int forever(const struct causeway_workers_item *item, void *context)
{
    struct work *work = context;
    (void)item;
    if (rank != ranks - 1)
        hang(work);
    else
        fclose(fopen(hangs, "w"));
    while (rank == ranks - 1)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return 0;
}

/* Rank 0 has all results and writes that down; then only MPI_Abort ends the job. What is printed before that
 * a launcher may lose. */
static int check_silent(void)
{
    static struct work work;
    struct causeway_workers job;
    causeway_workers_init(&job);
    job.items = 500;
    job.compute = forever;
    job.context = &work;
    job.boss = CAUSEWAY_WORKERS_BOSS_SERVES;
    job.patience_seconds = 0.3;
    unlink(hangs);
    unlink(there);
    MPI_Barrier(MPI_COMM_WORLD);
    int status = causeway_workers_run(MPI_COMM_WORLD, &job);
    if (rank == 0) {
        check_error(status, CAUSEWAY_WORKERS_SILENT, "all results are there, but some ranks do not answer");
        fclose(fopen(there, "w"));
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}

static void check_no_items(void)
{
    struct causeway_workers job;
    causeway_workers_init(&job);
    job.compute = compute;
    check_error(causeway_workers_run(MPI_COMM_WORLD, &job), CAUSEWAY_WORKERS_NO_ITEMS, "there are no items");
    job.items = 10;
    job.groups = "1,0";
    if (ranks > 1)
        check_error(causeway_workers_run(MPI_COMM_WORLD, &job), CAUSEWAY_WORKERS_GROUPS, "group 1 is empty");
    job.groups = NULL;
    job.sum_bytes = 8;
    check_error(causeway_workers_run(MPI_COMM_WORLD, &job), CAUSEWAY_WORKERS_PARAMETER,
                "without a combine function");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4) {
        fprintf(stderr, "check: usage: check SEED|silent CASES DIRECTORY\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(hangs, sizeof hangs, "%s/a-rank-hangs", argv[3]);
    snprintf(there, sizeof there, "%s/all-results-are-there", argv[3]);
    if (!strcmp(argv[1], "silent"))
        return check_silent();
    seed = strtoull(argv[1], NULL, 10);
    int cases = (int)strtol(argv[2], NULL, 10);
    check_no_items();
    if (ranks > 2)
        check_flood();
    for (int i = 0; i < cases; i++, seed++) {
        state = seed * UINT64_C(2654435769) + 12345;
        below(1);
        enum trouble trouble = i % 4 ? NONE : FAIL_ONCE + i / 4 % (TROUBLES - 1);
        if (getenv("CHECK_SHOWS") && rank == 0)
            fprintf(stderr, "check: seed %" PRIu64 ": %s\n", seed, troubles[trouble]);
        check_case(trouble);
    }
    if (rank == 0)
        printf("check: %d jobs on %d ranks are as on one\n", cases, ranks);
    unlink(hangs);
    unlink(there);
    MPI_Finalize();
    return 0;
}
