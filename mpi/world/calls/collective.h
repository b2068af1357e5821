/* One call of a collective operation over sites: its arguments as the program gave them, and its three forms.
 * One that waits does the operation at once; one that does not wait, and a persistent one, keep a copy, since
 * the program may free what it named. */
#ifndef CAUSEWAY_WORLD_COLLECTIVE_H
#define CAUSEWAY_WORLD_COLLECTIVE_H

#include "common/binding/export.h"
#include "common/binding/signatures.h"
#include "world/calls/check.h"
#include "world/native/native.h"

/* What goes out, or comes in. */
struct part {
    const void *buffer;
    int count;
    MPI_Datatype type;
    /* By rank, or by neighbour, `entries` of them; NULL: as above. Places are in bytes. */
    const int *counts, *starts;
    const MPI_Aint *displs;
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

/* Defines MPI_Name, MPI_Iname and MPI_Name_init. `within` and `iwithin` are statements that call the MPI
 * below with ARGUMENTS(Name); prepare_Name checks them and fills the call in. */
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

/* The same of one that every MPI has in both forms. Within a site the blocking form is done by the other one
 * where the MPI has no hook, but not where `is_wrong` says that this is wrong with some version. */
#define COLLECTIVE_BUT(Name, name, is_wrong)                          \
    FORMS(Name, name,                                                 \
          return (is_wrong) ? NATIVE_MET(Name, comm, ARGUMENTS(Name)) \
                            : NATIVE(Name, I##name, ARGUMENTS(Name)), \
          return PASS(I##name, ARGUMENTS(Name), request))

/* MPICH's Ibcast of an intercommunicator hands out what the wrong rank has. No program is fast by these, so
 * that all operations of intercommunicators are left as they are. */
#define COLLECTIVE(Name, name) COLLECTIVE_BUT(Name, name, native_is_inter(comm))

#endif
