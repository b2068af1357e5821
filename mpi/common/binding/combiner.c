#include "common/binding/combiner.h"

/* MPI_Type_get_envelope_c exists since MPI 4, in which the older call refuses types that were made with large
 * counts. */
typedef int large_envelope(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);

int combiner_envelope(MPI_Datatype type, struct envelope *made)
{
    static large_envelope *large;
    static int was_sought;
    int combiner;
    MPI_Count counts, addresses, large_counts, types;
    *made = (struct envelope){0};
    if (!was_sought) {
        large = (large_envelope *)mpi_calls_find("Type_get_envelope_c");
        was_sought = 1;
    }
    if (type == handle.datatype_null)
        return -1;
    if (!large)
        return real.Type_get_envelope(type, &made->counts, &made->addresses, &made->types, &combiner)
                   ? -1
                   : combiner;
    if (large(type, &counts, &addresses, &large_counts, &types, &combiner))
        return -1;
    *made = (struct envelope){(int)counts, (int)addresses, (int)types, large_counts > 0};
    return combiner;
}

int combiner_of(MPI_Datatype type)
{
    struct envelope made;
    return combiner_envelope(type, &made);
}
