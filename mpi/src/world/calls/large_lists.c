/* Collective calls with lists of large counts, of MPI 4: over sites, and with an MPI that has none, those
 * that are as small as ever. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

#if MPI_VERSION >= 4

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

/* Whether an MPI's own library has a call: the twins of this library for other interfaces have all, and a
 * program that finds them there may ask for what its MPI lacks. */
static int is_there(const char *name)
{
    static const char *const libraries[] = {"libmpi.so.40", "libmpi_abi.so.1", "libmpi.so.12",
                                            "libmpich.so.12"};
    int found = 0;
    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        found = library && dlsym(library, name);
        if (library)
            dlclose(library);
    }
    return found;
}

/* Lists of int, in the order in which they were made. */
struct narrow {
    int *ints[4], count, fits;
};

/* How many entries the lists have at this rank, where `root` alone has any, or all. */
enum { ALL = -1 };
static int members(const struct comm *on, MPI_Comm comm, int root)
{
    int size = on ? on->size : 0, rank = on ? on->rank : 0;
    if (!on) {
        PASS(Comm_size, comm, &size);
        PASS(Comm_rank, comm, &rank);
    }
    return root == ALL || rank == root ? size : 0;
}

static int *narrow_new(struct narrow *narrow, int size)
{
    int *list = malloc((size_t)(size > 0 ? size : 1) * sizeof *list);
    narrow->fits = narrow->fits && list;
    narrow->ints[narrow->count++] = list;
    return list;
}

static void narrow_counts(struct narrow *narrow, const MPI_Count *wide, int size)
{
    int *list = narrow_new(narrow, size);
    for (int i = 0; i < size && list; i++) {
        narrow->fits = narrow->fits && wide[i] <= INT_MAX;
        list[i] = (int)wide[i];
    }
}

static void narrow_starts(struct narrow *narrow, const MPI_Aint *wide, int size)
{
    int *list = narrow_new(narrow, size);
    for (int i = 0; i < size && list; i++) {
        narrow->fits = narrow->fits && wide[i] <= INT_MAX && wide[i] >= INT_MIN;
        list[i] = (int)wide[i];
    }
}

static void narrow_end(struct narrow *narrow)
{
    for (int i = 0; i < narrow->count; i++)
        free(narrow->ints[i]);
}

EXPORT int MPI_Gatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                         const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                         int root, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    static int is_told;
    static int (*own)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count[], const MPI_Aint[],
                      MPI_Datatype, int, MPI_Comm);
    struct narrow narrow = {.fits = 1};
    if (!own && is_there("PMPI_Gatherv_c"))
        own = (int (*)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count[], const MPI_Aint[],
                       MPI_Datatype, int, MPI_Comm))mpi_calls_find("Gatherv_c");
    if (!on && own) {
        if (ours.is_on)
            local_meet(comm);
        return own(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
    }
    narrow.fits = narrow.fits && sendcount <= INT_MAX;
    int size = members(on, comm, root);
    narrow_counts(&narrow, recvcounts, size);
    narrow_starts(&narrow, displs, size);
    int status = narrow.fits ? MPI_Gatherv(sendbuf, (int)sendcount, sendtype, recvbuf, narrow.ints[0],
                                           narrow.ints[1], recvtype, root, comm)
                             : (on ? refuse(comm, "MPI_Gatherv_c", &is_told) : NO_MPI);
    narrow_end(&narrow);
    return status;
}
BOTH(Gatherv_c);

EXPORT int MPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                          MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                          int root, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    static int is_told;
    static int (*own)(const void *, const MPI_Count[], const MPI_Aint[], MPI_Datatype, void *, MPI_Count,
                      MPI_Datatype, int, MPI_Comm);
    struct narrow narrow = {.fits = 1};
    if (!own && is_there("PMPI_Scatterv_c"))
        own = (int (*)(const void *, const MPI_Count[], const MPI_Aint[], MPI_Datatype, void *, MPI_Count,
                       MPI_Datatype, int, MPI_Comm))mpi_calls_find("Scatterv_c");
    if (!on && own) {
        if (ours.is_on)
            local_meet(comm);
        return own(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
    }
    narrow.fits = narrow.fits && recvcount <= INT_MAX;
    int size = members(on, comm, root);
    narrow_counts(&narrow, sendcounts, size);
    narrow_starts(&narrow, displs, size);
    int status = narrow.fits ? MPI_Scatterv(sendbuf, narrow.ints[0], narrow.ints[1], sendtype, recvbuf,
                                            (int)recvcount, recvtype, root, comm)
                             : (on ? refuse(comm, "MPI_Scatterv_c", &is_told) : NO_MPI);
    narrow_end(&narrow);
    return status;
}
BOTH(Scatterv_c);

EXPORT int MPI_Allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                            const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                            MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    static int is_told;
    static int (*own)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count[], const MPI_Aint[],
                      MPI_Datatype, MPI_Comm);
    struct narrow narrow = {.fits = 1};
    if (!own && is_there("PMPI_Allgatherv_c"))
        own = (int (*)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count[], const MPI_Aint[],
                       MPI_Datatype, MPI_Comm))mpi_calls_find("Allgatherv_c");
    if (!on && own) {
        if (ours.is_on)
            local_meet(comm);
        return own(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
    }
    narrow.fits = narrow.fits && sendcount <= INT_MAX;
    int size = members(on, comm, ALL);
    narrow_counts(&narrow, recvcounts, size);
    narrow_starts(&narrow, displs, size);
    int status = narrow.fits ? MPI_Allgatherv(sendbuf, (int)sendcount, sendtype, recvbuf, narrow.ints[0],
                                              narrow.ints[1], recvtype, comm)
                             : (on ? refuse(comm, "MPI_Allgatherv_c", &is_told) : NO_MPI);
    narrow_end(&narrow);
    return status;
}
BOTH(Allgatherv_c);

EXPORT int MPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                           MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
                           const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    static int is_told;
    static int (*own)(const void *, const MPI_Count[], const MPI_Aint[], MPI_Datatype, void *,
                      const MPI_Count[], const MPI_Aint[], MPI_Datatype, MPI_Comm);
    struct narrow narrow = {.fits = 1};
    if (!own && is_there("PMPI_Alltoallv_c"))
        own = (int (*)(const void *, const MPI_Count[], const MPI_Aint[], MPI_Datatype, void *,
                       const MPI_Count[], const MPI_Aint[], MPI_Datatype,
                       MPI_Comm))mpi_calls_find("Alltoallv_c");
    if (!on && own) {
        if (ours.is_on)
            local_meet(comm);
        return own(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
    }
    int size = members(on, comm, ALL);
    narrow_counts(&narrow, sendcounts, sendbuf == MPI_IN_PLACE ? 0 : size);
    narrow_counts(&narrow, recvcounts, size);
    narrow_starts(&narrow, sdispls, sendbuf == MPI_IN_PLACE ? 0 : size);
    narrow_starts(&narrow, rdispls, size);
    int status = narrow.fits ? MPI_Alltoallv(sendbuf, narrow.ints[0], narrow.ints[2], sendtype, recvbuf,
                                             narrow.ints[1], narrow.ints[3], recvtype, comm)
                             : (on ? refuse(comm, "MPI_Alltoallv_c", &is_told) : NO_MPI);
    narrow_end(&narrow);
    return status;
}
BOTH(Alltoallv_c);

EXPORT int MPI_Alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                           const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
                           const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    static int is_told;
    static int (*own)(const void *, const MPI_Count[], const MPI_Aint[], const MPI_Datatype[], void *,
                      const MPI_Count[], const MPI_Aint[], const MPI_Datatype[], MPI_Comm);
    struct narrow narrow = {.fits = 1};
    if (!own && is_there("PMPI_Alltoallw_c"))
        own = (int (*)(const void *, const MPI_Count[], const MPI_Aint[], const MPI_Datatype[], void *,
                       const MPI_Count[], const MPI_Aint[], const MPI_Datatype[],
                       MPI_Comm))mpi_calls_find("Alltoallw_c");
    if (!on && own) {
        if (ours.is_on)
            local_meet(comm);
        return own(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
    }
    int size = members(on, comm, ALL);
    narrow_counts(&narrow, sendcounts, sendbuf == MPI_IN_PLACE ? 0 : size);
    narrow_counts(&narrow, recvcounts, size);
    narrow_starts(&narrow, sdispls, sendbuf == MPI_IN_PLACE ? 0 : size);
    narrow_starts(&narrow, rdispls, size);
    int status = narrow.fits ? MPI_Alltoallw(sendbuf, narrow.ints[0], narrow.ints[2], sendtypes, recvbuf,
                                             narrow.ints[1], narrow.ints[3], recvtypes, comm)
                             : (on ? refuse(comm, "MPI_Alltoallw_c", &is_told) : NO_MPI);
    narrow_end(&narrow);
    return status;
}
BOTH(Alltoallw_c);

EXPORT int MPI_Reduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    static int is_told;
    static int (*own)(const void *, void *, const MPI_Count[], MPI_Datatype, MPI_Op, MPI_Comm);
    struct narrow narrow = {.fits = 1};
    if (!own && is_there("PMPI_Reduce_scatter_c"))
        own = (int (*)(const void *, void *, const MPI_Count[], MPI_Datatype, MPI_Op,
                       MPI_Comm))mpi_calls_find("Reduce_scatter_c");
    if (!on && own) {
        if (ours.is_on)
            local_meet(comm);
        return own(sendbuf, recvbuf, recvcounts, datatype, op, comm);
    }
    int size = members(on, comm, ALL);
    narrow_counts(&narrow, recvcounts, size);
    int status = narrow.fits ? MPI_Reduce_scatter(sendbuf, recvbuf, narrow.ints[0], datatype, op, comm)
                             : (on ? refuse(comm, "MPI_Reduce_scatter_c", &is_told) : NO_MPI);
    narrow_end(&narrow);
    return status;
}
BOTH(Reduce_scatter_c);

#endif
