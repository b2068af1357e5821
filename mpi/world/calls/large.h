/* Calls with large counts, of MPI 4. Each is made by the call with small ones: more elements than an int
 * counts become one of a type of their own, and lists of large counts lists of small ones. An MPI without
 * these calls gets them, too: a program finds them in the libraries that are preloaded for other MPIs, which
 * would cut its handles. */
#ifndef CAUSEWAY_WORLD_LARGE_H
#define CAUSEWAY_WORLD_LARGE_H

#include "world/calls/refuse.h"

/* What a call has made for itself. */
struct large {
    MPI_Datatype rows[2];
    int *lists[4];
    int row_count, list_count;
    /* The small call cannot say it. */
    int is_too_large, error;
};

/* The count for the small call. Where it is too large that is 1, and the type becomes one of so many. */
int large_count(struct large *large, MPI_Count count, MPI_Datatype *type);
/* The same for a buffer that may be MPI_IN_PLACE, whose count and type say nothing. */
int large_sent(struct large *large, const void *buffer, MPI_Count count, MPI_Datatype *type);
/* A count that nothing can take the place of. */
int large_few(struct large *large, MPI_Count count);
/* Lists of int. */
const int *large_counts(struct large *large, const MPI_Count *wide, int many);
const int *large_places(struct large *large, const MPI_Aint *wide, int many);

/* Whether this rank's arguments for the root say something. */
int large_is_root(MPI_Comm comm, int root);
/* Entries of lists: of those whom this rank exchanges data with, of its own group, of neighbours that send or
 * that receive. */
int large_members(MPI_Comm comm);
int large_own_members(MPI_Comm comm);
enum { FROM, TO };
int large_neighbors(MPI_Comm comm, int way);

/* Where a reduction's next elements are. */
void *large_at(const void *buffer, MPI_Aint bytes);
MPI_Aint large_extent(MPI_Datatype type);

/* The call that a program would reach by this name: libraries that are preloaded before this one have their
 * part in it. */
void *large_find_small(const char *name);

int large_refuse(struct large *large, MPI_Comm comm, const char *name, int *is_told);
void large_end(struct large *large);

enum { PIECE = 1 << 30 };

/* Open MPI 4 declares no call of MPI 4. */
#if MPI_VERSION >= 4
#define SMALL_CALL(name) __typeof__(&MPI_##name)
#else
#define SMALL_CALL(name) int (*)()
#endif

/* Defines MPI_name_c with these parameters; A are their names, S the arguments of the small call. The
 * statements at the end make these. */
#define LARGE(name, comm, P, A, S, ...) LARGE_CALL(name, comm, 0, (void)0, P, A, S, __VA_ARGS__)
#define LARGE_CALL(name, comm, prefers_own, meet, P, A, S, ...)               \
    EXPORT int MPI_##name##_c P                                               \
    {                                                                         \
        static int(*own) P;                                                   \
        static void *small;                                                   \
        static int is_told;                                                   \
        struct large large = {0};                                             \
        int result = NO_MPI, has_own = !refuse_is_over_sites(comm);           \
        if (has_own && !own)                                                  \
            own = (int(*) P)mpi_calls_find(#name "_c");                       \
        if (!small)                                                           \
            small = large_find_small("MPI_" #name);                           \
        if (!mpi_calls_fit())                                                 \
            return own ? own A : NO_MPI;                                      \
        has_own = has_own && own;                                             \
        __VA_ARGS__;                                                          \
        if (has_own && (prefers_own || large.is_too_large))                   \
            result = (meet, own A);                                           \
        else if (large.is_too_large || large.error != MPI_SUCCESS)            \
            result = large_refuse(&large, comm, "MPI_" #name "_c", &is_told); \
        else if (small)                                                       \
            result = ((SMALL_CALL(name))small)S;                              \
        large_end(&large);                                                    \
        return result;                                                        \
    }                                                                         \
    BOTH(name##_c);

#define UNPACK(...) __VA_ARGS__
/* Defines the blocking, the non-blocking and the persistent form of a collective operation. */
#define LARGE_FORMS(name, iname, P, A, S, ...) \
    FORMS(0, name, iname, (UNPACK P), (UNPACK A), (UNPACK S), __VA_ARGS__)
/* The same of one with lists: an MPI's own call keeps its lists itself. */
#define LARGE_LISTS(name, iname, P, A, S, ...) \
    FORMS(1, name, iname, (UNPACK P), (UNPACK A), (UNPACK S), __VA_ARGS__)
#define FORMS(prefers_own, name, iname, P, A, S, ...)                                             \
    LARGE_CALL(name, comm, prefers_own, ours.is_on ? native_meet(comm) : 0, P, A, S, __VA_ARGS__) \
    LATER_FORMS(prefers_own, name, iname, P, A, S, __VA_ARGS__)
#define LATER_FORMS(prefers_own, name, iname, P, A, S, ...)                                               \
    LARGE_CALL(iname, comm, prefers_own, (void)0, (UNPACK P, MPI_Request * request), (UNPACK A, request), \
               (UNPACK S, request), __VA_ARGS__)                                                          \
    LARGE_CALL(name##_init, comm, prefers_own, (void)0, (UNPACK P, MPI_Info info, MPI_Request * request), \
               (UNPACK A, info, request), (UNPACK S, info, request), __VA_ARGS__)

/* Defines a reduction of each element by itself: the blocking form goes by pieces. */
#define LARGE_REDUCTION(name, iname, P, A, S, ...)                              \
    EXPORT int MPI_##name##_c P                                                 \
    {                                                                           \
        static int(*own) P;                                                     \
        static void *small;                                                     \
        const void *whole_out = out;                                            \
        void *whole_in = in;                                                    \
        int status = NO_MPI;                                                    \
        if (!small)                                                             \
            small = large_find_small("MPI_" #name);                             \
        if (!mpi_calls_fit()) {                                                 \
            own = (int(*) P)mpi_calls_find(#name "_c");                         \
            return own ? own A : NO_MPI;                                        \
        }                                                                       \
        MPI_Aint extent = count > PIECE ? large_extent(type) : 0;               \
        for (MPI_Count at = 0; small && (at == 0 || at < count); at += PIECE) { \
            int n = count - at > PIECE ? PIECE : (int)(count - at);             \
            out = large_at(whole_out, at * extent);                             \
            in = large_at(whole_in, at * extent);                               \
            status = ((SMALL_CALL(name))small)S;                                \
            if (status != MPI_SUCCESS)                                          \
                break;                                                          \
        }                                                                       \
        return status;                                                          \
    }                                                                           \
    BOTH(name##_c);                                                             \
    LATER_FORMS(0, name, iname, P, A, S, __VA_ARGS__)

#endif
