/* Windows with large displacement units. */
#define _GNU_SOURCE
#include "world/calls/large.h"

LARGE(Win_create, comm,
      (void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *window),
      (base, size, unit, info, comm, window), (base, size, n, info, comm, window),
      int n = large_few(&large, unit))
LARGE(Win_allocate, comm,
      (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
      (size, unit, info, comm, base, window), (size, n, info, comm, base, window),
      int n = large_few(&large, unit))
LARGE(Win_allocate_shared, comm,
      (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
      (size, unit, info, comm, base, window), (size, n, info, comm, base, window),
      int n = large_few(&large, unit))
