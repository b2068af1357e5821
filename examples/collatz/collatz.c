/* collatz [ITEMS]: how many steps each number up to ITEMS takes to come down to 1, if an even one is halved
 * and an odd one tripled and increased by 1; and which number takes most. Numbers need very unlike time, as
 * rays and most other work do. The last line is the same for any number of ranks and groups. */
#include "causeway_workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct longest {
    int64_t number, steps;
};

static int steps_of(const struct causeway_workers_item *item, void *context)
{
    int32_t steps = 0;
    (void)context;
    for (uint64_t n = item->index + 1; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    *(int32_t *)item->result = steps;
    struct longest *longest = item->sum;
    if (steps > longest->steps)
        *longest = (struct longest){item->index + 1, steps};
    return 0;
}

static void longer(void *into, const void *later, void *context)
{
    const struct longest *other = later;
    (void)context;
    if (other->steps > ((struct longest *)into)->steps)
        *(struct longest *)into = *other;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    struct causeway_workers job;
    struct longest longest = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    causeway_workers_init(&job);
    job.items = argc > 1 ? strtoll(argv[1], NULL, 10) : 1000000;
    job.compute = steps_of;
    job.result_bytes = sizeof(int32_t);
    job.results = rank == 0 && job.items > 0 ? malloc(job.items * sizeof(int32_t)) : NULL;
    job.sum_bytes = sizeof longest;
    job.combine = longer;
    job.sum = &longest;
    double begun = MPI_Wtime();
    int status = causeway_workers_run(MPI_COMM_WORLD, &job);
    if (rank == 0 && status)
        fprintf(stderr, "collatz: %s\n", causeway_workers_error());
    /* Though ranks hang, their part is done by others. */
    if (rank == 0 && (status == CAUSEWAY_WORKERS_OK || status == CAUSEWAY_WORKERS_SILENT)) {
        uint32_t check = 0;
        for (int64_t i = 0; i < job.items; i++)
            check = check * 31 + ((int32_t *)job.results)[i];
        printf("%d ranks, %s, %.3f s; rank 0 exchanged %" PRId64 " messages, %" PRId64 " with other groups\n",
               ranks, job.is_hierarchical ? "a boss a group" : "one boss", MPI_Wtime() - begun,
               job.messages_received + job.messages_sent, job.messages_far);
        printf("of %" PRId64 " numbers %" PRId64 " takes most steps, %" PRId64 "; check %u\n", job.items,
               longest.number, longest.steps, (unsigned)check);
    }
    free(job.results);
    if (status == CAUSEWAY_WORKERS_SILENT) {
        /* A launcher that kills all ranks at once may lose what was printed right before. */
        fflush(stdout);
        sleep(1);
        MPI_Abort(MPI_COMM_WORLD, status);
    }
    MPI_Finalize();
    return status;
}
