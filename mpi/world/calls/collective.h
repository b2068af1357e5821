/* One call of a collective operation over sites: its arguments as the program gave them, and its three forms.
 * The blocking form does the operation at once; the non-blocking and persistent forms keep a copy, because
 * the program may free its arguments. */
#ifndef CAUSEWAY_WORLD_COLLECTIVE_H
#define CAUSEWAY_WORLD_COLLECTIVE_H

#include "common/binding/export.h"
#include "common/binding/signatures.h"
#include "world/calls/check.h"
#include "world/native/native.h"

/* The data that is sent, or received. */
struct part {
    const void *buffer;
    int count;
    MPI_Datatype type;
    /* By rank or by neighbour, `entries` values each; NULL if `count` and `type` above apply. `displs` are in
     * bytes. */
    const int *counts, *starts;
    const MPI_Aint *displs;
    const MPI_Datatype *types;
    int entries;
};

struct collective {
    struct comm *on;
    /* Does the operation, and calls no error handler. May block. */
    int (*run)(const struct collective *all);
    /* Zero if not significant at this rank, as at all ranks but the root. */
    struct part out, in;
    MPI_Op op;
    int root;
};

/* Return MPI_SUCCESS, or the error with which they have called the communicator's error handler. */
int collective_do(const struct collective *all);
int collective_begin(const struct collective *all, MPI_Request *request);
int collective_keep(const struct collective *all, MPI_Request *request);

/* Frees a copy. */
void collective_free(void *copy);

/* In an operation with a root, whether this rank is the root, and whether it has a part. */
int collective_is_root(const struct comm *on, int root);
int collective_has_part(const struct comm *on, int root);

/* Open MPI 4 has the persistent forms under the name MPIX_X_init only. Version 5, which this library also
 * serves, has the usual name. */
#if defined(OPEN_MPI)
#define COLLECTIVE_INIT(name)                                                                             \
    BOTH(name##_init);                                                                                    \
    EXPORT __typeof__(MPI_##name##_init) MPIX_##name##_init __attribute__((alias("MPI_" #name "_init"))); \
    EXPORT __typeof__(MPI_##name##_init) PMPIX_##name##_init __attribute__((alias("MPI_" #name "_init")))
#else
#define COLLECTIVE_INIT(name) BOTH(name##_init)
#endif

/* Defines MPI_Name, MPI_Iname and MPI_Name_init. `within` and `iwithin` are statements that call the MPI
 * below with ARGUMENTS(Name); prepare_Name checks the arguments, and fills in the call. */
#define FORMS(Name, name, within, iwithin)                                                           \
    EXPORT int MPI_##Name(PARAMETERS(Name))                                                          \
    {                                                                                                \
        if (!comm_find(comm))                                                                        \
            within;                                                                                  \
        struct collective all = {.on = comm_find(comm)};                                             \
        int status = prepare_##Name(&all, ARGUMENTS(Name));                                          \
        return status == MPI_SUCCESS ? collective_do(&all) : status;                                 \
    }                                                                                                \
    BOTH(Name);                                                                                      \
    EXPORT int MPI_I##name(PARAMETERS(Name), MPI_Request *request)                                   \
    {                                                                                                \
        if (!comm_find(comm))                                                                        \
            iwithin;                                                                                 \
        struct collective all = {.on = comm_find(comm)};                                             \
        NEEDS(all.on, request);                                                                      \
        int status = prepare_##Name(&all, ARGUMENTS(Name));                                          \
        return status == MPI_SUCCESS ? collective_begin(&all, request) : status;                     \
    }                                                                                                \
    BOTH(I##name);                                                                                   \
    EXPORT int MPI_##Name##_init(PARAMETERS(Name), MPI_Info info, MPI_Request *request)              \
    {                                                                                                \
        if (!comm_find(comm))                                                                        \
            OTHER(#Name "_init", (PARAMETERS(Name), MPI_Info, MPI_Request *), ARGUMENTS(Name), info, \
                  request);                                                                          \
        struct collective all = {.on = comm_find(comm)};                                             \
        NEEDS(all.on, request);                                                                      \
        int status = prepare_##Name(&all, ARGUMENTS(Name));                                          \
        return status == MPI_SUCCESS ? collective_keep(&all, request) : status;                      \
    }                                                                                                \
    COLLECTIVE_INIT(Name)

/* The same for an operation that every MPI has in both forms. Within a site, the non-blocking form does the
 * work of the blocking one if the MPI has no hook, unless `is_wrong` says that some version does this
 * wrong. */
#define COLLECTIVE_BUT(Name, name, is_wrong)                          \
    FORMS(Name, name,                                                 \
          return (is_wrong) ? NATIVE_MET(Name, comm, ARGUMENTS(Name)) \
                            : NATIVE(Name, I##name, ARGUMENTS(Name)), \
          return PASS(I##name, ARGUMENTS(Name), request))

/* MPICH's Ibcast on an intercommunicator distributes the wrong rank's data. No program depends on the speed
 * of operations on intercommunicators, so all of them use the blocking form there. */
#define COLLECTIVE(Name, name) COLLECTIVE_BUT(Name, name, native_is_inter(comm))

#endif
