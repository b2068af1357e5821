/* Alltoallw from Fortran with Open MPI. Its own entry point turns as many datatypes into C's as the native
 * communicator has ranks, which are those of this site alone. All others hand on what they get. */
#define _GNU_SOURCE
#include "binding/export.h"
#include "world/calls/refuse.h"

#if defined(OPEN_MPI)

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether an address is that of a variable of Open MPI's Fortran, whose name each compiler spells its own
 * way. */
static int is_variable(const void *address, const char *lower, const char *upper)
{
    static const char *const endings[] = {"", "_", "__"};
    char name[64];
    for (size_t i = 0; address && i < 6; i++) {
        snprintf(name, sizeof name, "%s%s", i < 3 ? lower : upper, endings[i % 3]);
        if (dlsym(RTLD_DEFAULT, name) == address)
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

static MPI_Datatype *types_of(const MPI_Fint *handles, int count)
{
    static MPI_Datatype (*convert)(MPI_Fint);
    MPI_Datatype *types = malloc((size_t)(count > 0 ? count : 1) * sizeof *types);
    if (!convert)
        convert = (MPI_Datatype (*)(MPI_Fint))mpi_calls_find("Type_f2c");
    for (int i = 0; i < count && types && convert; i++)
        types[i] = convert(handles[i]);
    return types;
}

#define PARAMETERS                                                                                  \
    (char *send, MPI_Fint *send_counts, MPI_Fint *send_starts, MPI_Fint *send_types, char *receive, \
     MPI_Fint *receive_counts, MPI_Fint *receive_starts, MPI_Fint *receive_types, MPI_Fint *comm,   \
     MPI_Fint *error)

/* Hands on in a process whose MPI is another: this library may be preloaded there too. */
static int hand_on PARAMETERS
{
    static void(*next) PARAMETERS;
    if (!next)
        next = (void(*) PARAMETERS)dlsym(RTLD_NEXT, "mpi_alltoallw_");
    if (!next)
        return 0;
    next(send, send_counts, send_starts, send_types, receive, receive_counts, receive_starts, receive_types,
         comm, error);
    return 1;
}

static int members(MPI_Comm comm)
{
    int size = 0, is_inter = 0;
    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter)
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    return size;
}

/* The library that was loaded first has the call, as for every other entry point of Fortran: one above this
 * may improve it, and does at the other sites. */
static __typeof__(PMPI_Alltoallw) *first_above(void)
{
    static __typeof__(PMPI_Alltoallw) *found;
    if (!found)
        found = (__typeof__(found))dlsym(RTLD_DEFAULT, "PMPI_Alltoallw");
    return found;
}

/* An INTEGER of Fortran is an int of C in every Open MPI that Debian or PyPI has. */
EXPORT void ompi_alltoallw_f PARAMETERS
{
    static MPI_Comm (*convert)(MPI_Fint);
    if (!mpi_calls_fit() && hand_on(send, send_counts, send_starts, send_types, receive, receive_counts,
                                    receive_starts, receive_types, comm, error))
        return;
    int status = NO_MPI;
    if (!convert)
        convert = (MPI_Comm (*)(MPI_Fint))mpi_calls_find("Comm_f2c");
    if (convert) {
        MPI_Comm on = convert(*comm);
        int size = members(on);
        void *from = buffer_of(send);
        MPI_Datatype *out = from == MPI_IN_PLACE ? NULL : types_of(send_types, size);
        MPI_Datatype *in = types_of(receive_types, size);
        status = first_above()(from, (int *)send_counts, (int *)send_starts, out, buffer_of(receive),
                               (int *)receive_counts, (int *)receive_starts, in, on);
        free(out);
        free(in);
    }
    if (error)
        *error = (MPI_Fint)status;
}

#define NAMED(name) EXPORT __typeof__(ompi_alltoallw_f) name __attribute__((alias("ompi_alltoallw_f")))
NAMED(mpi_alltoallw);
NAMED(mpi_alltoallw_);
NAMED(mpi_alltoallw__);
NAMED(MPI_ALLTOALLW);
NAMED(pmpi_alltoallw);
NAMED(pmpi_alltoallw_);
NAMED(pmpi_alltoallw__);
NAMED(PMPI_ALLTOALLW);

#endif
