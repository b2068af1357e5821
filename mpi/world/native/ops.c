#include "world/native/ops.h"

#include <stdlib.h>

struct held {
    struct held *next;
    MPI_Op op;
    int holders, is_freed;
};

/* One for each kind of operation in the reductions in progress: few. */
static struct held *all;

/* A handle has one record: while the freeing of its operation is deferred, the MPI does not reuse it. */
static struct held **find(MPI_Op op)
{
    struct held **at = &all;
    while (*at && (*at)->op != op)
        at = &(*at)->next;
    return at;
}

int op_hold(MPI_Op op)
{
    struct held *held = *find(op);
    if (!held) {
        held = malloc(sizeof *held);
        if (!held)
            return MPI_ERR_NO_MEM;
        *held = (struct held){.next = all, .op = op};
        all = held;
    }
    held->holders++;
    return MPI_SUCCESS;
}

void op_release(MPI_Op op)
{
    struct held **at = find(op), *held = *at;
    if (!held || --held->holders > 0)
        return;
    *at = held->next;
    if (held->is_freed)
        real.Op_free(&held->op);
    free(held);
}

int op_puts_off(MPI_Op op)
{
    struct held *held = *find(op);
    if (held)
        held->is_freed = 1;
    return held != NULL;
}
