/* How the calls that are counted are defined: each counts, then goes to the MPI as it came. */
#ifndef CAUSEWAY_COUNTING_H
#define CAUSEWAY_COUNTING_H

#include "messages/counts.h"
#include "messages/peers.h"

/* Whether calls are counted now: between MPI_Init and MPI_Finalize, in a process that is told where to write
 * and whose MPI has this library's binary interface. */
int counting_is_on(void);

/* Defines MPI_Name, with the parameters P_Like, whose names are A_Like. */
#define COUNTED(Name, Like, counting)       \
    EXPORT int MPI_##Name(P_##Like)         \
    {                                       \
        if (counting_is_on()) {             \
            counting;                       \
        }                                   \
        OTHER(#Name, (P_##Like), A_##Like); \
    }                                       \
    BOTH(Name)

/* The same with a request as the last parameter. */
#define COUNTED_REQUEST(Name, Like, counting)                       \
    EXPORT int MPI_##Name(P_##Like, MPI_Request *request)           \
    {                                                               \
        if (counting_is_on()) {                                     \
            counting;                                               \
        }                                                           \
        OTHER(#Name, (P_##Like, MPI_Request *), A_##Like, request); \
    }                                                               \
    BOTH(Name)

/* The forms with large counts, which MPI has since 4.0, have the parameters L_Like. */
#if MPI_VERSION >= 4
#define COUNTED_LARGE(Name, Like, counting)      \
    EXPORT int MPI_##Name##_c(L_##Like)          \
    {                                            \
        if (counting_is_on()) {                  \
            counting;                            \
        }                                        \
        OTHER(#Name "_c", (L_##Like), A_##Like); \
    }                                            \
    BOTH(Name##_c)
#define COUNTED_LARGE_REQUEST(Name, Like, counting)                      \
    EXPORT int MPI_##Name##_c(L_##Like, MPI_Request *request)            \
    {                                                                    \
        if (counting_is_on()) {                                          \
            counting;                                                    \
        }                                                                \
        OTHER(#Name "_c", (L_##Like, MPI_Request *), A_##Like, request); \
    }                                                                    \
    BOTH(Name##_c)
#else
#define COUNTED_LARGE(Name, Like, counting) _Static_assert(1, "")
#define COUNTED_LARGE_REQUEST(Name, Like, counting) _Static_assert(1, "")
#endif

#define BOTH_COUNTS(Name, Like, counting) \
    COUNTED(Name, Like, counting);        \
    COUNTED_LARGE(Name, Like, counting)
#define BOTH_COUNTS_REQUEST(Name, Like, counting) \
    COUNTED_REQUEST(Name, Like, counting);        \
    COUNTED_LARGE_REQUEST(Name, Like, counting)

#endif
