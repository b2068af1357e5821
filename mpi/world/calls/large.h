/* MPI 4's calls with large counts. Each is carried out by the call with small counts: more elements than an
 * int can count become one element of a derived type, and lists of large counts become lists of int. They are
 * also defined for an MPI without them: otherwise a program would find them in the libraries that are
 * preloaded for other MPIs, which would truncate its handles. */
#ifndef CAUSEWAY_WORLD_LARGE_H
#define CAUSEWAY_WORLD_LARGE_H

#include "common/binding/signatures.h"
#include "world/calls/refuse.h"

/* What a call has allocated. */
struct large {
    MPI_Datatype rows[2];
    int *lists[4];
    int row_count, list_count;
    /* Whether the small call cannot express the arguments. */
    int is_too_large, error;
};

/* The count for the small call. If `count` is too large, that is 1, and the type becomes one of `count`
 * elements. */
int large_count(struct large *large, MPI_Count count, MPI_Datatype *type);
/* The same for a buffer that may be MPI_IN_PLACE, whose count and type are not significant. */
int large_sent(struct large *large, const void *buffer, MPI_Count count, MPI_Datatype *type);
/* A count for which no derived type can be substituted. */
int large_few(struct large *large, MPI_Count count);
/* Convert lists to int. */
const int *large_counts(struct large *large, const MPI_Count *wide, int many);
const int *large_displs(struct large *large, const MPI_Aint *wide, int many);

/* Whether the arguments that are significant only at the root are significant at this rank. */
int large_is_root(MPI_Comm comm, int root);
/* The number of entries of a list: for the ranks with which this rank exchanges data, for its own group, and
 * for the neighbours that send to it or receive from it. */
int large_members(MPI_Comm comm);
int large_own_members(MPI_Comm comm);
enum { FROM, TO };
int large_neighbors(MPI_Comm comm, int way);

/* The address of a reduction's next elements. */
void *large_at(const void *buffer, MPI_Aint bytes);
MPI_Aint large_extent(MPI_Datatype type);

/* The function that a program would reach by this name, so that libraries which are preloaded before this one
 * take part. */
void *large_find_small(const char *name);

int large_refuse(struct large *large, MPI_Comm comm, const char *name, int *is_told);
void large_end(struct large *large);

enum { PIECE = 1 << 30 };

/* Open MPI 4 declares no function of MPI 4. */
#if MPI_VERSION >= 4
#define SMALL_CALL(name) __typeof__(&MPI_##name)
#else
#define SMALL_CALL(name) int (*)()
#endif

/* Defines MPI_Name_c with these parameters; `arguments` are their names, `small_ones` those of the small
 * call. The statements at the end compute these. */
#define LARGE_CALL(Name, comm, prefers_own, meet, parameters, arguments, small_ones, ...) \
    EXPORT int MPI_##Name##_c parameters                                                  \
    {                                                                                     \
        static int(*own) parameters;                                                      \
        static void *small;                                                               \
        static int is_told;                                                               \
        struct large large = {0};                                                         \
        int result = NO_MPI, has_own = !refuse_is_over_sites(comm);                       \
        if (has_own && !own)                                                              \
            own = (int(*) parameters)mpi_calls_find(#Name "_c");                          \
        if (!small)                                                                       \
            small = large_find_small("MPI_" #Name);                                       \
        if (!mpi_calls_fit())                                                             \
            return own ? own arguments : NO_MPI;                                          \
        has_own = has_own && own;                                                         \
        /* With the arguments of the program, which the statements below change. */       \
        if (has_own && (prefers_own))                                                     \
            return (meet, own arguments);                                                 \
        __VA_ARGS__;                                                                      \
        if (has_own && large.is_too_large)                                                \
            result = (meet, own arguments);                                               \
        else if (large.is_too_large || large.error != MPI_SUCCESS)                        \
            result = large_refuse(&large, comm, "MPI_" #Name "_c", &is_told);             \
        else if (small)                                                                   \
            result = ((SMALL_CALL(Name))small)small_ones;                                 \
        large_end(&large);                                                                \
        return result;                                                                    \
    }                                                                                     \
    BOTH(Name##_c);
#define UNPACK(...) __VA_ARGS__

/* The same with the parameters of Like, and with one more at the end. */
#define LARGE(Name, Like, comm, small_ones, ...) \
    LARGE_CALL(Name, comm, 0, (void)0, (LARGE_PARAMETERS(Like)), (ARGUMENTS(Like)), small_ones, __VA_ARGS__)
#define LARGE_REQUEST(Name, Like, comm, small_ones, ...)                                \
    LARGE_CALL(Name, comm, 0, (void)0, (LARGE_PARAMETERS(Like), MPI_Request * request), \
               (ARGUMENTS(Like), request), (UNPACK small_ones, request), __VA_ARGS__)
#define LARGE_STATUS(Name, Like, comm, small_ones, ...)                               \
    LARGE_CALL(Name, comm, 0, (void)0, (LARGE_PARAMETERS(Like), MPI_Status * status), \
               (ARGUMENTS(Like), status), (UNPACK small_ones, status), __VA_ARGS__)

/* Defines the blocking, non-blocking and persistent forms of a collective operation with large counts. */
#define LARGE_FORMS(Name, name, small_ones, ...)                                            \
    LARGE_CALL(Name, comm, 0, ours.is_on ? native_meet(comm) : 0, (LARGE_PARAMETERS(Name)), \
               (ARGUMENTS(Name)), small_ones, __VA_ARGS__)                                  \
    LATER_FORMS(0, Name, name, small_ones, __VA_ARGS__)
/* The same for an operation with lists. The MPI's own call is preferred, because it keeps its lists
 * itself. */
#define LARGE_LISTS(Name, name, small_ones, ...)                                            \
    LARGE_CALL(Name, comm, 1, ours.is_on ? native_meet(comm) : 0, (LARGE_PARAMETERS(Name)), \
               (ARGUMENTS(Name)), small_ones, __VA_ARGS__)                                  \
    LATER_FORMS(1, Name, name, small_ones, __VA_ARGS__)
#define LATER_FORMS(prefers_own, Name, name, small_ones, ...)                                        \
    LARGE_CALL(I##name, comm, prefers_own, (void)0, (LARGE_PARAMETERS(Name), MPI_Request * request), \
               (ARGUMENTS(Name), request), (UNPACK small_ones, request), __VA_ARGS__)                \
    LARGE_CALL(Name##_init, comm, prefers_own, (void)0,                                              \
               (LARGE_PARAMETERS(Name), MPI_Info info, MPI_Request * request),                       \
               (ARGUMENTS(Name), info, request), (UNPACK small_ones, info, request), __VA_ARGS__)

/* Defines an elementwise reduction, whose blocking form is done in pieces. */
#define LARGE_REDUCTION(Name, name, small_ones, ...)                            \
    EXPORT int MPI_##Name##_c(LARGE_PARAMETERS(Name))                           \
    {                                                                           \
        static int (*own)(LARGE_PARAMETERS(Name));                              \
        static void *small;                                                     \
        const void *whole_from = from;                                          \
        void *whole_into = into;                                                \
        int status = NO_MPI;                                                    \
        if (!small)                                                             \
            small = large_find_small("MPI_" #Name);                             \
        if (!mpi_calls_fit()) {                                                 \
            own = (int (*)(LARGE_PARAMETERS(Name)))mpi_calls_find(#Name "_c");  \
            return own ? own(ARGUMENTS(Name)) : NO_MPI;                         \
        }                                                                       \
        MPI_Aint extent = count > PIECE ? large_extent(type) : 0;               \
        for (MPI_Count at = 0; small && (at == 0 || at < count); at += PIECE) { \
            int n = count - at > PIECE ? PIECE : (int)(count - at);             \
            from = large_at(whole_from, at * extent);                           \
            into = large_at(whole_into, at * extent);                           \
            status = ((SMALL_CALL(Name))small)small_ones;                       \
            if (status != MPI_SUCCESS)                                          \
                break;                                                          \
        }                                                                       \
        return status;                                                          \
    }                                                                           \
    BOTH(Name##_c);                                                             \
    LATER_FORMS(0, Name, name, small_ones, __VA_ARGS__)

#endif
