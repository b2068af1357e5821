/* tsqr [--rows M] [--columns N] [--runs COUNT] [--seed SEED] [--no-q] [--no-check]: factorises a random
 * matrix of doubles whose rows are spread over all ranks, and says how long it took and how exact it is. The
 * matrix is the same on any number of ranks. */
#include "causeway_tsqr.h"
#include "program/table.h"

#include <stdio.h>

static const char *factor(void *context, struct matrix *m, int wants_q)
{
    static char sentence[200];
    causeway_tsqr_tree *tree = context;
    unsigned flags = wants_q ? CAUSEWAY_TSQR_R_EVERYWHERE | CAUSEWAY_TSQR_FORM_Q : 0;
    int status = causeway_tsqr_factor(tree, CAUSEWAY_TSQR_DOUBLE, m->rows, m->columns, m->a, m->ld, m->r,
                                      m->columns, flags, NULL);
    snprintf(sentence, sizeof sentence, "rank %d: %s", causeway_tsqr_culprit(tree),
             causeway_tsqr_sentence(status));
    return status == CAUSEWAY_TSQR_OK ? NULL : sentence;
}

static int64_t far_messages(void *context)
{
    struct causeway_tsqr_counts counts;
    causeway_tsqr_count(context, &counts);
    return counts.messages_far;
}

int main(int argc, char **argv)
{
    causeway_tsqr_tree *tree;
    MPI_Init(&argc, &argv);
    struct options options = table_options("tsqr", argv, 0);
    int status = causeway_tsqr_open_for(MPI_COMM_WORLD, (int)options.columns, &tree);
    if (status != CAUSEWAY_TSQR_OK)
        table_fail("tsqr", causeway_tsqr_sentence(status), 1);
    table_print(&(struct table_method){"tsqr", causeway_tsqr_sites(tree), tree, factor, NULL, far_messages},
                &options);
    causeway_tsqr_close(tree);
    MPI_Finalize();
    return 0;
}
