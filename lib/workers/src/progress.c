#include "progress.h"

#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void workers_progress_open(struct workers_progress *progress, const struct workers_tree *tree, int is_shown,
                           int64_t items, int64_t block_items, double now)
{
    memset(progress, 0, sizeof *progress);
    progress->is_shown = is_shown;
    progress->is_terminal = isatty(2);
    progress->items = items;
    progress->block_items = block_items;
    progress->blocks = (items + block_items - 1) / block_items;
    progress->begun = now;
    progress->next = now + 1;
    progress->group_of = workers_new(sizeof(int) * tree->ranks);
    progress->done_by = workers_new(sizeof(int64_t) * tree->ranks);
    for (int rank = 0; rank < tree->ranks; rank++) {
        int other = 0;
        while (tree->levels && tree->colors[other] != tree->colors[rank])
            other++;
        progress->group_of[rank] = other == rank && rank ? progress->groups++ : progress->group_of[other];
        progress->groups += rank == 0;
    }
}

void workers_progress_done(struct workers_progress *progress, int rank, int64_t blocks)
{
    progress->done += blocks;
    progress->done_by[progress->group_of[rank]] += blocks;
}

void workers_progress_show(struct workers_progress *progress, double now, int is_end)
{
    if (!progress->is_shown || (now < progress->next && !is_end))
        return;
    progress->next = now + 1;
    int64_t items = progress->done * progress->block_items;
    if (items > progress->items)
        items = progress->items;
    double rate = (double)items / (now > progress->begun ? now - progress->begun : 1e-9);
    char line[400];
    int at = snprintf(line, sizeof line,
                      "causeway_workers: %" PRId64 " of %" PRId64 " items (%.1f %%), %.4g/s, %.0f s %s",
                      items, progress->items, 100.0 * (double)items / (double)progress->items, rate,
                      is_end     ? now - progress->begun
                      : rate > 0 ? (double)(progress->items - items) / rate
                                 : 0,
                      is_end ? "in all" : "left");
    for (int i = 0; i < progress->groups && progress->groups > 1 && progress->done && at < 360; i++)
        at += snprintf(line + at, sizeof line - at, "%s group %d %.0f %%", i ? "," : ";", i,
                       100.0 * (double)progress->done_by[i] / (double)progress->done);
    /* A terminal shows the newest line alone. */
    fprintf(stderr,
            progress->is_terminal && !is_end ? "\r%-100s"
            : progress->is_terminal          ? "\r%-100s\n"
                                             : "%s\n",
            line);
}

void workers_progress_close(struct workers_progress *progress)
{
    free(progress->group_of);
    free(progress->done_by);
}
