/* The calls that this library may have disabled in MPICH: windows and partitioned communication. See
 * binding/delivery.h. */
#define _GNU_SOURCE
#include "collectives/binding/delivery.h"
#include "common/binding/export.h"

/* Processes of Open MPI need these definitions as well: otherwise they would find those of this library's
 * build for another binary interface, which would truncate their handles. */
#if defined(OPEN_MPI)
#define delivery_refuse(call) (void)0
#endif

/* MPI_Win_allocate_shared is not one of them: memory that processes of one host share does not involve
 * libfabric. */
EXPORT int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    delivery_refuse("MPI_Win_create");
    return PASS(Win_create, base, size, unit, info, comm, win);
}
BOTH(Win_create);

EXPORT int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
    delivery_refuse("MPI_Win_allocate");
    return PASS(Win_allocate, size, unit, info, comm, base, win);
}
BOTH(Win_allocate);

EXPORT int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    delivery_refuse("MPI_Win_create_dynamic");
    return PASS(Win_create_dynamic, info, comm, win);
}
BOTH(Win_create_dynamic);

#if MPI_VERSION >= 4
EXPORT int MPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                            MPI_Win *win)
{
    delivery_refuse("MPI_Win_create_c");
    OTHER("Win_create_c", (void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *), base, size, unit, info,
          comm, win);
}
BOTH(Win_create_c);

EXPORT int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base,
                              MPI_Win *win)
{
    delivery_refuse("MPI_Win_allocate_c");
    OTHER("Win_allocate_c", (MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *), size, unit, info,
          comm, base, win);
}
BOTH(Win_allocate_c);

#define PARAMETERS(MEMORY)                                                                               \
    MEMORY memory, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
        MPI_Info info, MPI_Request *request
#define PARTITIONED(Name, MEMORY)                                                                            \
    EXPORT int MPI_##Name(PARAMETERS(MEMORY))                                                                \
    {                                                                                                        \
        delivery_refuse("MPI_" #Name);                                                                       \
        OTHER(#Name, (PARAMETERS(MEMORY)), memory, partitions, count, type, peer, tag, comm, info, request); \
    }                                                                                                        \
    BOTH(Name)

PARTITIONED(Psend_init, const void *);
PARTITIONED(Precv_init, void *);
#endif
