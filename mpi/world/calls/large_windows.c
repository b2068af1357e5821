/* Windows with large displacement units. */
#define _GNU_SOURCE
#include "world/calls/large.h"

LARGE(Win_create, Win_create, comm, (base, size, n, info, comm, window), int n = large_few(&large, unit))
LARGE(Win_allocate, Win_allocate, comm, (size, n, info, comm, base, window), int n = large_few(&large, unit))
LARGE(Win_allocate_shared, Win_allocate_shared, comm, (size, n, info, comm, base, window),
      int n = large_few(&large, unit))
