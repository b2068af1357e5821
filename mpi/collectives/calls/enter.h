/* What the calls of collective operations share. Each has several forms, and each is improved if the
 * communicator spans sites and the arguments allow it; otherwise the call goes to the MPI. MPI_X and PMPI_X
 * are one function: C calls the first; Fortran calls either, depending on the MPI and the flavour; tools that
 * are preloaded before this library call the second. */
#ifndef CAUSEWAY_ENTER_H
#define CAUSEWAY_ENTER_H

#include "collectives/async/plan.h"
#include "common/binding/export.h"
#include "common/binding/signatures.h"

/* Defines the blocking, non-blocking and persistent forms of an operation. plan_name decides whether the
 * operation is improved, and how. */
#define FORMS(Name, name)                                                                          \
    EXPORT int MPI_##Name(PARAMETERS(Name))                                                        \
    {                                                                                              \
        struct plan plan = {.form = BLOCKING};                                                     \
        return plan_##name(&plan, ARGUMENTS(Name)) ? plan_do(&plan) : PASS(Name, ARGUMENTS(Name)); \
    }                                                                                              \
    BOTH(Name);                                                                                    \
    EXPORT int MPI_I##name(PARAMETERS(Name), MPI_Request *request)                                 \
    {                                                                                              \
        struct plan plan = {.form = NONBLOCKING};                                                  \
        return plan_##name(&plan, ARGUMENTS(Name)) && plan_tags(&plan)                             \
                   ? plan_begin(&plan, request)                                                    \
                   : PASS(I##name, ARGUMENTS(Name), request);                                      \
    }                                                                                              \
    BOTH(I##name);                                                                                 \
    PERSISTENT_FORM(Name, name)

/* Open MPI 4 has the persistent form under the name MPIX_X_init only, and programs look for that name to find
 * out whether the MPI has it. The library for version 5 defines both names, because it serves either version
 * where each site runs its own MPI. */
#if defined(OPEN_MPI) && !defined(CAUSEWAY_OPEN_MPI_5)
#define PERSISTENT_FORM(Name, name) \
    PERSISTENT_CALL(Name, name, MPIX_##Name##_init, PMPIX_##Name##_init, "MPIX_" #Name "_init")
#elif defined(OPEN_MPI)
#define PERSISTENT_FORM(Name, name)                                                                       \
    PERSISTENT_CALL(Name, name, MPI_##Name##_init, PMPI_##Name##_init, "MPI_" #Name "_init");             \
    EXPORT __typeof__(MPI_##Name##_init) MPIX_##Name##_init __attribute__((alias("MPI_" #Name "_init"))); \
    EXPORT __typeof__(MPI_##Name##_init) PMPIX_##Name##_init __attribute__((alias("MPI_" #Name "_init")))
#else
#define PERSISTENT_FORM(Name, name) \
    PERSISTENT_CALL(Name, name, MPI_##Name##_init, PMPI_##Name##_init, "MPI_" #Name "_init")
#endif
#define PERSISTENT_CALL(Name, name, CALLED, P_CALLED, text)                                                \
    EXPORT int CALLED(PARAMETERS(Name), MPI_Info info, MPI_Request *request)                               \
    {                                                                                                      \
        struct plan plan = {.form = PERSISTENT};                                                           \
        if (plan_##name(&plan, ARGUMENTS(Name)) && plan_tags(&plan))                                       \
            return plan_keep(&plan, request);                                                              \
        OTHER(#Name "_init", (PARAMETERS(Name), MPI_Info, MPI_Request *), ARGUMENTS(Name), info, request); \
    }                                                                                                      \
    EXPORT __typeof__(CALLED) P_CALLED __attribute__((alias(text)))

/* Defines the same three forms with large counts, which MPI has had since 4.0. */
#if MPI_VERSION >= 4
#define LARGE_FORMS(Name, name, plan_of)                                                                 \
    EXPORT int MPI_##Name##_c(LARGE_PARAMETERS(Name))                                                    \
    {                                                                                                    \
        struct plan plan = {.form = BLOCKING};                                                           \
        if (plan_of(&plan, ARGUMENTS(Name)))                                                             \
            return plan_do(&plan);                                                                       \
        OTHER(#Name "_c", (LARGE_PARAMETERS(Name)), ARGUMENTS(Name));                                    \
    }                                                                                                    \
    BOTH(Name##_c);                                                                                      \
    EXPORT int MPI_I##name##_c(LARGE_PARAMETERS(Name), MPI_Request *request)                             \
    {                                                                                                    \
        struct plan plan = {.form = NONBLOCKING};                                                        \
        if (plan_of(&plan, ARGUMENTS(Name)) && plan_tags(&plan))                                         \
            return plan_begin(&plan, request);                                                           \
        OTHER("I" #name "_c", (LARGE_PARAMETERS(Name), MPI_Request *), ARGUMENTS(Name), request);        \
    }                                                                                                    \
    BOTH(I##name##_c);                                                                                   \
    EXPORT int MPI_##Name##_init_c(LARGE_PARAMETERS(Name), MPI_Info info, MPI_Request *request)          \
    {                                                                                                    \
        struct plan plan = {.form = PERSISTENT};                                                         \
        if (plan_of(&plan, ARGUMENTS(Name)) && plan_tags(&plan))                                         \
            return plan_keep(&plan, request);                                                            \
        OTHER(#Name "_init_c", (LARGE_PARAMETERS(Name), MPI_Info, MPI_Request *), ARGUMENTS(Name), info, \
              request);                                                                                  \
    }                                                                                                    \
    BOTH(Name##_init_c)
#else
#define LARGE_FORMS(Name, name, plan_of) \
    __attribute__((unused)) static int (*const unused_##name)(struct plan *, LARGE_PARAMETERS(Name)) = plan_of
#endif

/* Chooses how to run an operation on `count` elements of a type, and describes the type in the plan. Returns
 * false to leave the operation to the MPI. */
int enter(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count, MPI_Datatype type);
int enter_reduction(struct plan *plan, MPI_Comm comm, enum operation operation, int64_t count,
                    MPI_Datatype type, MPI_Op op);
/* The same for an operation whose size not all ranks know, so that the choice cannot depend on it. */
int enter_any(struct plan *plan, MPI_Comm comm, enum operation operation);
/* Chooses again, for an operation whose size all ranks have computed. */
int enter_bytes(struct plan *plan, enum operation operation, int64_t bytes);

/* Leaves an operation to the MPI after all. */
int give_up(struct plan *plan);

static inline int is_root(const struct hierarchy *on, int root) { return root >= 0 && root < on->size; }

/* Takes tags for the operation's messages. Returns false, at all ranks alike, to leave the call to the
 * MPI. */
int plan_tags(struct plan *plan);

/* Run the plan: plan_do now, plan_begin in the background from now on, plan_keep each time the request is
 * started. */
int plan_do(struct plan *plan);
int plan_begin(struct plan *plan, MPI_Request *request);
int plan_keep(struct plan *plan, MPI_Request *request);

#endif
