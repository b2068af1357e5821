/* MPI_Pack for ranks with an unlike processor: nobody knows afterwards which of the bytes are numbers, so
 * that those among them which differ cannot be converted. There is no PMPI_Pack here: the library of
 * collectives packs with the MPI's own, and knows what it packs. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"
#include "world/native/unlike.h"

#include <dlfcn.h>

typedef int packs(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);

/* The call of the MPI, or of this library for another interface if the MPI has that. */
static packs *below(void)
{
    static packs *found;
    if (!found)
        found = mpi_calls_fit() ? real.Pack : (packs *)dlsym(RTLD_NEXT, "MPI_Pack");
    return found;
}

EXPORT int MPI_Pack(const void *from, int count, MPI_Datatype type, void *into, int bytes, int *position,
                    MPI_Comm comm)
{
    static int is_told;
    struct form_map *map = NULL;
    int status = refuse_is_over_sites(comm) ? unlike_map(type, &map) : MPI_SUCCESS;
    if (map) {
        form_map_free(map);
        return refuse(comm, "MPI_Pack of numbers that another site's processors keep in another form",
                      &is_told);
    }
    packs *pack = below();
    return TRY(status, pack ? pack(from, count, type, into, bytes, position, comm) : NO_MPI);
}
