/* A handle as a number: an address in Open MPI and the standard interface, an integer in MPICH. */
#ifndef CAUSEWAY_WORLD_KEY_H
#define CAUSEWAY_WORLD_KEY_H

#include "common/binding/mpi_calls.h"

#include <stdint.h>

#if defined(OPEN_MPI) || defined(CAUSEWAY_STANDARD_ABI)
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))
#else
#define KEY(handle) ((uint64_t)(uint32_t)(handle))
#endif

#endif
