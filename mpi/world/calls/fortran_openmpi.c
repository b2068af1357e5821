/* Fortran's entry points to operations with a list of datatypes (those with w in their names), for Open MPI.
 * Its own entry points convert as many datatypes to C as the native communicator has ranks or neighbours,
 * which are only those of this site. All other entry points pass on what they get. */
#define _GNU_SOURCE
#include "common/binding/export.h"
#include "world/calls/large.h"

#if defined(OPEN_MPI)

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether an address is that of one of Open MPI's Fortran variables, whose names each compiler spells in its
 * own way. */
static int is_variable(const void *address, const char *lower, const char *upper)
{
    static const char *const endings[] = {"", "_", "__"};
    char name[64];
    for (size_t i = 0; address && i < 6; i++) {
        snprintf(name, sizeof name, "%s%s", i < 3 ? lower : upper, endings[i % 3]);
        if (mpi_calls_first(name) == address)
            return 1;
    }
    return 0;
}

static void *buffer_of(void *address)
{
    if (is_variable(address, "mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE"))
        return MPI_IN_PLACE;
    return is_variable(address, "mpi_fortran_bottom", "MPI_FORTRAN_BOTTOM") ? MPI_BOTTOM : address;
}

/* Converts a Fortran handle to C. The MPI has one function for each kind of handle, and all take a Fortran
 * integer. */
static void *handle_of(const char *convert, MPI_Fint number)
{
    void *(*found)(MPI_Fint) = (void *(*)(MPI_Fint))mpi_calls_find(convert);
    return found ? found(number) : NULL;
}

static MPI_Datatype *types_of(const MPI_Fint *handles, int count)
{
    MPI_Datatype (*convert)(MPI_Fint) = (MPI_Datatype (*)(MPI_Fint))mpi_calls_find("Type_f2c");
    MPI_Datatype *types = malloc((size_t)(count > 0 ? count : 1) * sizeof *types);
    for (int i = 0; i < count && types && convert; i++)
        types[i] = convert(handles[i]);
    return types;
}

/* The arguments of one call from Fortran. A Fortran INTEGER is a C int in every Open MPI of Debian or PyPI;
 * displacements may be of MPI_ADDRESS_KIND. */
struct call {
    char *send, *receive;
    const int *send_counts, *receive_counts;
    const void *send_starts, *receive_starts;
    const MPI_Fint *send_types, *receive_types;
    MPI_Fint *info, *comm, *request, *error;
    int is_among_neighbors;
};

typedef int waits(const void *, const int *, const void *, const MPI_Datatype *, void *, const int *,
                  const void *, const MPI_Datatype *, MPI_Comm);
typedef int begins(const void *, const int *, const void *, const MPI_Datatype *, void *, const int *,
                   const void *, const MPI_Datatype *, MPI_Comm, MPI_Request *);
typedef int keeps(const void *, const int *, const void *, const MPI_Datatype *, void *, const int *,
                  const void *, const MPI_Datatype *, MPI_Comm, MPI_Info, MPI_Request *);

/* Calls `name` of the library that was loaded first, as every other Fortran entry point does: a library above
 * this one may improve the call, and does at the other sites. */
static void do_call(const struct call *call, const char *name)
{
    void *found = mpi_calls_first(name);
    MPI_Comm on = handle_of("Comm_f2c", *call->comm);
    MPI_Request request = handle.request_null;
    void *from = buffer_of(call->send), *into = buffer_of(call->receive);
    int status = NO_MPI;
    if (found && on) {
        int members = call->is_among_neighbors ? 0 : large_members(on);
        int to = call->is_among_neighbors ? large_neighbors(on, TO) : members;
        int of = call->is_among_neighbors ? large_neighbors(on, FROM) : members;
        MPI_Datatype *out = from == MPI_IN_PLACE ? NULL : types_of(call->send_types, to);
        MPI_Datatype *in = types_of(call->receive_types, of);
        if (call->info)
            status =
                ((keeps *)found)(from, call->send_counts, call->send_starts, out, into, call->receive_counts,
                                 call->receive_starts, in, on, handle_of("Info_f2c", *call->info), &request);
        else if (call->request)
            status = ((begins *)found)(from, call->send_counts, call->send_starts, out, into,
                                       call->receive_counts, call->receive_starts, in, on, &request);
        else
            status = ((waits *)found)(from, call->send_counts, call->send_starts, out, into,
                                      call->receive_counts, call->receive_starts, in, on);
        free(out);
        free(in);
    }
    if (call->request && status == MPI_SUCCESS) {
        MPI_Fint (*number)(MPI_Request) = (MPI_Fint (*)(MPI_Request))mpi_calls_find("Request_c2f");
        *call->request = number ? number(request) : 0;
    }
    if (call->error)
        *call->error = (MPI_Fint)status;
}

#define LISTS                                                                                  \
    char *send, MPI_Fint *send_counts, void *send_starts, MPI_Fint *send_types, char *receive, \
        MPI_Fint *receive_counts, void *receive_starts, MPI_Fint *receive_types, MPI_Fint *comm
#define LIST_NAMES \
    send, send_counts, send_starts, send_types, receive, receive_counts, receive_starts, receive_types, comm
#define ONLY(...) __VA_ARGS__

/* Defines an entry point under the names that compilers give it. In a process with another MPI, into which
 * this library may be preloaded, too, it passes the call on. `MORE` are the parameters after the
 * communicator; the last arguments set the members of struct call accordingly. */
#define ENTRY(own, lower, upper, c_name, MORE, MORE_NAMES, ...)              \
    EXPORT void own(LISTS, ONLY MORE)                                        \
    {                                                                        \
        static void (*next)(LISTS, ONLY MORE);                               \
        if (!mpi_calls_fit() && !next)                                       \
            next = (void (*)(LISTS, ONLY MORE))dlsym(RTLD_NEXT, #lower "_"); \
        if (!mpi_calls_fit() && next) {                                      \
            next(LIST_NAMES, ONLY MORE_NAMES);                               \
            return;                                                          \
        }                                                                    \
        struct call call = {.send = send,                                    \
                            .send_counts = send_counts,                      \
                            .send_starts = send_starts,                      \
                            .send_types = send_types,                        \
                            .receive = receive,                              \
                            .receive_counts = receive_counts,                \
                            .receive_starts = receive_starts,                \
                            .receive_types = receive_types,                  \
                            .comm = comm,                                    \
                            .error = error,                                  \
                            __VA_ARGS__};                                    \
        do_call(&call, c_name);                                              \
    }                                                                        \
    NAMED(own, lower);                                                       \
    NAMED(own, lower##_);                                                    \
    NAMED(own, lower##__);                                                   \
    NAMED(own, upper);                                                       \
    NAMED(own, p##lower);                                                    \
    NAMED(own, p##lower##_);                                                 \
    NAMED(own, p##lower##__);                                                \
    NAMED(own, P##upper)
#define NAMED(own, name) EXPORT __typeof__(own) name __attribute__((alias(#own)))

#define WAITS (MPI_Fint * error), (error)
#define BEGINS (MPI_Fint * request, MPI_Fint * error), (request, error)
#define KEEPS (MPI_Fint * info, MPI_Fint * request, MPI_Fint * error), (info, request, error)
#define ENTRY_OF(own, lower, upper, c_name, MORE, ...) ENTRY(own, lower, upper, c_name, MORE, __VA_ARGS__)

ENTRY_OF(ompi_alltoallw_f, mpi_alltoallw, MPI_ALLTOALLW, "PMPI_Alltoallw", WAITS, .is_among_neighbors = 0);
ENTRY_OF(ompi_ialltoallw_f, mpi_ialltoallw, MPI_IALLTOALLW, "PMPI_Ialltoallw", BEGINS, .request = request);
ENTRY_OF(ompi_alltoallw_init_f, mpi_alltoallw_init, MPI_ALLTOALLW_INIT, "PMPI_Alltoallw_init", KEEPS,
         .info = info, .request = request);
ENTRY_OF(ompi_neighbor_alltoallw_f, mpi_neighbor_alltoallw, MPI_NEIGHBOR_ALLTOALLW, "PMPI_Neighbor_alltoallw",
         WAITS, .is_among_neighbors = 1);
ENTRY_OF(ompi_ineighbor_alltoallw_f, mpi_ineighbor_alltoallw, MPI_INEIGHBOR_ALLTOALLW,
         "PMPI_Ineighbor_alltoallw", BEGINS, .request = request, .is_among_neighbors = 1);
ENTRY_OF(ompi_neighbor_alltoallw_init_f, mpi_neighbor_alltoallw_init, MPI_NEIGHBOR_ALLTOALLW_INIT,
         "PMPI_Neighbor_alltoallw_init", KEEPS, .info = info, .request = request, .is_among_neighbors = 1);

/* In Open MPI 4 the persistent forms have other names. */
ENTRY_OF(ompix_alltoallw_init_f, mpix_alltoallw_init, MPIX_ALLTOALLW_INIT, "PMPI_Alltoallw_init", KEEPS,
         .info = info, .request = request);
ENTRY_OF(ompix_neighbor_alltoallw_init_f, mpix_neighbor_alltoallw_init, MPIX_NEIGHBOR_ALLTOALLW_INIT,
         "PMPI_Neighbor_alltoallw_init", KEEPS, .info = info, .request = request, .is_among_neighbors = 1);

#endif
