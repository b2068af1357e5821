#define _GNU_SOURCE
#include "enter.h"

struct levels *give_up(struct levels *on)
{
    if (on)
        levels_leave(on, MPI_SUCCESS);
    return NULL;
}

/* `op`: a reduction's, whose order of ranks must be kept where it does not commute. */
static struct levels *enter_with(MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type, const MPI_Op *op,
                                 struct shape *shape, struct choice *choice)
{
    int commutes = 1;
    struct levels *on = op && *op == handle.op_null ? NULL : levels_enter(comm);
    if (!on)
        return NULL;
    if (count < 0 || !shape_of(type, shape) || (op && real.Op_commutative(*op, &commutes)))
        return give_up(on);
    *choice = choose(on, operation, count * shape->size, commutes);
    return choice->algorithm == NATIVE ? give_up(on) : on;
}

struct levels *enter(MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type, struct shape *shape,
                            struct choice *choice)
{
    return enter_with(comm, operation, count, type, NULL, shape, choice);
}

struct levels *enter_reduction(MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type, MPI_Op op,
                                      struct shape *shape, struct choice *choice)
{
    return enter_with(comm, operation, count, type, &op, shape, choice);
}

struct levels *enter_any(MPI_Comm comm, enum operation operation)
{
    struct levels *on = levels_enter(comm);
    return on && choose(on, operation, 0, 1).algorithm == NATIVE ? give_up(on) : on;
}
