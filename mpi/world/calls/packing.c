/* MPI_Pack and MPI_Unpack between ranks with unlike processors: nobody knows which of the packed bytes are
 * numbers, so numbers whose forms differ cannot be converted. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"
#include "world/native/unlike.h"

#include <dlfcn.h>

typedef int packs(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
typedef int unpacks(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);

/* Refuses types that would have to be converted, and returns an MPI error code. */
static int check(MPI_Datatype type, MPI_Comm comm, const char *what, int *is_told)
{
    struct form_map *map = NULL;
    int status = refuse_is_over_sites(comm) ? unlike_map(type, &map) : MPI_SUCCESS;
    if (!map)
        return status;
    form_map_free(map);
    return refuse(comm, what, is_told);
}

EXPORT int MPI_Pack(const void *from, int count, MPI_Datatype type, void *into, int bytes, int *position,
                    MPI_Comm comm)
{
    static int is_told;
    static packs *below;
    int status =
        check(type, comm, "MPI_Pack of numbers that another site's processors keep otherwise", &is_told);
    /* The MPI's function or, if the MPI has another interface, that of this library's build for it. */
    if (!below)
        below = mpi_calls_fit() ? real.Pack : (packs *)dlsym(RTLD_NEXT, "MPI_Pack");
    return TRY(status, below ? below(from, count, type, into, bytes, position, comm) : NO_MPI);
}
BOTH(Pack);

EXPORT int MPI_Unpack(const void *from, int bytes, int *position, void *into, int count, MPI_Datatype type,
                      MPI_Comm comm)
{
    static int is_told;
    static unpacks *below;
    int status =
        check(type, comm, "MPI_Unpack of numbers that another site's processors keep otherwise", &is_told);
    if (!below)
        below = mpi_calls_fit() ? real.Unpack : (unpacks *)dlsym(RTLD_NEXT, "MPI_Unpack");
    return TRY(status, below ? below(from, bytes, position, into, count, type, comm) : NO_MPI);
}
BOTH(Unpack);
