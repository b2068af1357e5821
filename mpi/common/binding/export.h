/* Macros that define the functions which programs call, and pass calls on to the MPI below. */
#ifndef CAUSEWAY_EXPORT_H
#define CAUSEWAY_EXPORT_H

#include "common/binding/mpi_calls.h"

#define EXPORT __attribute__((visibility("default")))
/* Defines PMPI_X beside MPI_X. */
#define BOTH(name) EXPORT __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)))

/* Without an MPI below there is nothing to call; 16 is MPI_ERR_OTHER or MPI_ERR_INTERN in all binary
 * interfaces. */
#define NO_MPI 16
#define PASS(name, ...) (mpi_calls_load(), real.name ? real.name(__VA_ARGS__) : NO_MPI)

/* Calls a function that not every MPI has; `text` is its name without the prefix. */
#define OTHER(text, PARAMETERS, ...)                       \
    do {                                                   \
        static int(*own) PARAMETERS;                       \
        if (!own)                                          \
            own = (int(*) PARAMETERS)mpi_calls_find(text); \
        return own ? own(__VA_ARGS__) : NO_MPI;            \
    } while (0)

#endif
