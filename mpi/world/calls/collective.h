/* One call of a collective operation over sites: its arguments as the program gave them, and its three forms.
 * One that waits does the operation at once; one that does not wait, and a persistent one, keep a copy, since
 * the program may free what it named. */
#ifndef CAUSEWAY_WORLD_COLLECTIVE_H
#define CAUSEWAY_WORLD_COLLECTIVE_H

#include "common/binding/export.h"
#include "world/calls/check.h"
#include "world/native/native.h"

/* What goes out, or comes in. */
struct part {
    const void *buffer;
    int count;
    MPI_Datatype type;
    /* By rank, or by neighbour, `entries` of them; NULL: as above. Places are in bytes. */
    const int *counts, *starts;
    const MPI_Aint *places;
    const MPI_Datatype *types;
    int entries;
};

struct collective {
    struct comm *on;
    /* Does it, and calls no error handler. It may wait. */
    int (*run)(const struct collective *all);
    /* Zero where it means nothing here, as at all ranks but one. */
    struct part out, in;
    MPI_Op op;
    int root;
};

/* Return MPI_SUCCESS, or what the communicator's error handler has been called with. */
int collective_do(const struct collective *all);
int collective_begin(const struct collective *all, MPI_Request *request);
int collective_keep(const struct collective *all, MPI_Request *request);

/* Frees a copy. */
void collective_free(void *copy);

/* Whether this rank has the whole, and whether it has a part, of an operation with a root. */
int collective_is_root(const struct comm *on, int root);
int collective_has_part(const struct comm *on, int root);

#define COLLECTIVE_ONLY(...) __VA_ARGS__

/* Open MPI 4 calls a persistent form by another name alone. Version 5, which this library serves too, has the
 * usual one. */
#if defined(OPEN_MPI)
#define COLLECTIVE_INIT(name)                                                                             \
    BOTH(name##_init);                                                                                    \
    EXPORT __typeof__(MPI_##name##_init) MPIX_##name##_init __attribute__((alias("MPI_" #name "_init"))); \
    EXPORT __typeof__(MPI_##name##_init) PMPIX_##name##_init __attribute__((alias("MPI_" #name "_init")))
#else
#define COLLECTIVE_INIT(name) BOTH(name##_init)
#endif

/* Defines MPI_NAME, MPI_INAME and MPI_NAME_init. `within` and `iwithin` are statements that call the MPI
 * below with ARGUMENTS; prepare_NAME checks them and fills the call in. */
#define COLLECTIVE_FORMS(name, iname, PARAMETERS, ARGUMENTS, within, iwithin)                        \
    EXPORT int MPI_##name PARAMETERS                                                                 \
    {                                                                                                \
        if (!comm_find(comm))                                                                        \
            within;                                                                                  \
        struct collective all = {.on = comm_find(comm)};                                             \
        int status = prepare_##name(&all, COLLECTIVE_ONLY ARGUMENTS);                                \
        return status == MPI_SUCCESS ? collective_do(&all) : status;                                 \
    }                                                                                                \
    BOTH(name);                                                                                      \
    EXPORT int MPI_##iname(COLLECTIVE_ONLY PARAMETERS, MPI_Request *request)                         \
    {                                                                                                \
        if (!comm_find(comm))                                                                        \
            iwithin;                                                                                 \
        struct collective all = {.on = comm_find(comm)};                                             \
        NEEDS(all.on, request);                                                                      \
        int status = prepare_##name(&all, COLLECTIVE_ONLY ARGUMENTS);                                \
        return status == MPI_SUCCESS ? collective_begin(&all, request) : status;                     \
    }                                                                                                \
    BOTH(iname);                                                                                     \
    EXPORT int MPI_##name##_init(COLLECTIVE_ONLY PARAMETERS, MPI_Info info, MPI_Request *request)    \
    {                                                                                                \
        if (!comm_find(comm))                                                                        \
            OTHER(#name "_init", (COLLECTIVE_ONLY PARAMETERS, MPI_Info info, MPI_Request * request), \
                  COLLECTIVE_ONLY ARGUMENTS, info, request);                                         \
        struct collective all = {.on = comm_find(comm)};                                             \
        NEEDS(all.on, request);                                                                      \
        int status = prepare_##name(&all, COLLECTIVE_ONLY ARGUMENTS);                                \
        return status == MPI_SUCCESS ? collective_keep(&all, request) : status;                      \
    }                                                                                                \
    COLLECTIVE_INIT(name)

/* The same of one that every MPI has in both forms. Within a site the blocking form is done by the other one
 * where the MPI has no hook, but not where `is_wrong` says that this is wrong with some version. */
#define COLLECTIVE_BUT(name, iname, PARAMETERS, ARGUMENTS, is_wrong)                       \
    COLLECTIVE_FORMS(name, iname, PARAMETERS, ARGUMENTS,                                   \
                     return (is_wrong) ? NATIVE_MET(name, comm, COLLECTIVE_ONLY ARGUMENTS) \
                                       : NATIVE(name, iname, COLLECTIVE_ONLY ARGUMENTS),   \
                     return PASS(iname, COLLECTIVE_ONLY ARGUMENTS, request))

/* MPICH's Ibcast of an intercommunicator hands out what the wrong rank has. No program is fast by these, so
 * that all operations of intercommunicators are left as they are. */
#define COLLECTIVE(name, iname, PARAMETERS, ARGUMENTS) \
    COLLECTIVE_BUT(name, iname, PARAMETERS, ARGUMENTS, native_is_inter(comm))

#endif
