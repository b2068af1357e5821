/* naps ITEMS MICROSECONDS: items that sleep, between nothing and twice as long, so that more ranks than cores
 * behave as if each had its own. It prints how long the run took beside the ideal, and how many messages rank
 * 0 exchanged: of these, those with other groups cross the WAN. */
#include "../../../lib/workers/causeway_workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int nap(const struct causeway_workers_item *item, void *context)
{
    double seconds = (double)((uint64_t)(item->index + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40) / (1 << 24);
    double begun = MPI_Wtime();
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 2e9 * *(double *)context)}, NULL);
    /* Sleep lasts longer than was asked for. */
    *(double *)item->result = MPI_Wtime() - begun;
    return 0;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    struct causeway_workers job;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double mean = (argc > 2 ? strtod(argv[2], NULL) : 500) * 1e-6, all = 0;
    causeway_workers_init(&job);
    job.items = argc > 1 ? strtoll(argv[1], NULL, 10) : 20000;
    job.compute = nap;
    job.context = &mean;
    job.result_bytes = sizeof(double);
    job.results = rank == 0 ? calloc(job.items, sizeof(double)) : NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    int status = causeway_workers_run(MPI_COMM_WORLD, &job);
    double seconds = MPI_Wtime() - begun;
    if (rank == 0 && status)
        fprintf(stderr, "naps: %s\n", causeway_workers_error());
    for (int64_t i = 0; rank == 0 && i < job.items; i++)
        all += ((double *)job.results)[i];
    if (rank == 0)
        printf("%d ranks, %s: %.3f s, of which items %.3f s; %" PRId64 " messages at rank 0, %" PRId64
               " with other groups; %" PRId64 " copies\n",
               ranks, job.is_hierarchical ? "a boss a group" : "one boss", seconds, all / ranks,
               job.messages_received + job.messages_sent, job.messages_far, job.copies);
    free(job.results);
    MPI_Finalize();
    return status;
}
