/* What the calls that programs make have in common: how they are defined, and whether one is improved. */
#ifndef CAUSEWAY_ENTER_H
#define CAUSEWAY_ENTER_H

#include "choice.h"
#include "transfer.h"

#define EXPORT __attribute__((visibility("default")))
/* Defines PMPI_X beside MPI_X. */
#define BOTH(name) EXPORT __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)))

/* Without an MPI below there is nothing to call; 16 is MPI_ERR_OTHER or MPI_ERR_INTERN in all binary interfaces. */
#define NO_MPI 16
#define PASS(name, ...) (mpi_calls_load(), real.name ? real.name(__VA_ARGS__) : NO_MPI)

/* The levels of an operation with `count` elements of a type, when it is to be improved; NULL leaves it to the MPI. */
struct levels *enter(MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type, struct shape *shape,
                     struct choice *choice);
struct levels *enter_reduction(MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type, MPI_Op op,
                               struct shape *shape, struct choice *choice);
/* Of one whose bytes not all ranks know, so that nobody can choose by them. */
struct levels *enter_any(MPI_Comm comm, enum operation operation);

/* Leaves an operation to the MPI after all. */
struct levels *give_up(struct levels *on);

static inline int is_root(const struct levels *on, int root) { return root >= 0 && root < on->size; }

#endif
