/* Macros that define the counted calls: each counts, then passes its arguments to the MPI unchanged. */
#ifndef CAUSEWAY_COUNTING_H
#define CAUSEWAY_COUNTING_H

#include "common/binding/signatures.h"
#include "messages/counts.h"
#include "messages/peers.h"

/* Whether calls are counted now: between MPI_Init and MPI_Finalize, in a process that is told where to write
 * and whose MPI has this library's binary interface. */
int counting_is_on(void);

/* Defines MPI_Name, with the parameters of Like. */
#define COUNTED(Name, Like, counting) \
    COUNTED_CALL(Name, #Name, (PARAMETERS(Like)), (ARGUMENTS(Like)), counting)
/* The same with one more parameter at the end. */
#define COUNTED_REQUEST(Name, Like, counting) \
    COUNTED_CALL(Name, #Name, (PARAMETERS(Like), MPI_Request * request), (ARGUMENTS(Like), request), counting)
#define COUNTED_STATUS(Name, Like, counting) \
    COUNTED_CALL(Name, #Name, (PARAMETERS(Like), MPI_Status * status), (ARGUMENTS(Like), status), counting)

#define COUNTED_CALL(Name, text, parameters, arguments, counting) \
    EXPORT int MPI_##Name parameters                              \
    {                                                             \
        if (counting_is_on()) {                                   \
            counting;                                             \
        }                                                         \
        OTHER(text, parameters, COUNTED_ONLY arguments);          \
    }                                                             \
    BOTH(Name)
#define COUNTED_ONLY(...) __VA_ARGS__

/* The forms with large counts, which MPI has had since 4.0. */
#if MPI_VERSION >= 4
#define COUNTED_LARGE(Name, Like, counting) \
    COUNTED_CALL(Name##_c, #Name "_c", (LARGE_PARAMETERS(Like)), (ARGUMENTS(Like)), counting)
#define COUNTED_LARGE_REQUEST(Name, Like, counting)                                     \
    COUNTED_CALL(Name##_c, #Name "_c", (LARGE_PARAMETERS(Like), MPI_Request * request), \
                 (ARGUMENTS(Like), request), counting)
#define COUNTED_LARGE_STATUS(Name, Like, counting)                                    \
    COUNTED_CALL(Name##_c, #Name "_c", (LARGE_PARAMETERS(Like), MPI_Status * status), \
                 (ARGUMENTS(Like), status), counting)
#else
#define COUNTED_LARGE(Name, Like, counting) _Static_assert(1, "")
#define COUNTED_LARGE_REQUEST(Name, Like, counting) _Static_assert(1, "")
#define COUNTED_LARGE_STATUS(Name, Like, counting) _Static_assert(1, "")
#endif

#define BOTH_COUNTS(Name, Like, counting) \
    COUNTED(Name, Like, counting);        \
    COUNTED_LARGE(Name, Like, counting)
#define BOTH_COUNTS_REQUEST(Name, Like, counting) \
    COUNTED_REQUEST(Name, Like, counting);        \
    COUNTED_LARGE_REQUEST(Name, Like, counting)
#define BOTH_COUNTS_STATUS(Name, Like, counting) \
    COUNTED_STATUS(Name, Like, counting);        \
    COUNTED_LARGE_STATUS(Name, Like, counting)

#endif
