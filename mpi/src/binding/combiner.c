#include "binding/combiner.h"

/* MPI has this since version 4, where the older call refuses what was made with large counts. */
typedef int large_envelope(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);

int combiner_of(MPI_Datatype type)
{
    static large_envelope *large;
    static int was_sought;
    int combiner, integers, addresses, types;
    MPI_Count many[4];
    if (!was_sought) {
        large = (large_envelope *)mpi_calls_find("Type_get_envelope_c");
        was_sought = 1;
    }
    if (type == handle.datatype_null ||
        (large ? large(type, &many[0], &many[1], &many[2], &many[3], &combiner)
               : real.Type_get_envelope(type, &integers, &addresses, &types, &combiner)))
        return -1;
    return combiner;
}
