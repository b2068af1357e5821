/* Counts what crosses between sites, for tests. */
#ifndef CAUSEWAY_COUNTERS_H
#define CAUSEWAY_COUNTERS_H

#include "common/binding/export.h"

#include <stdint.h>

/* Counts a message that this process sends to another site. */
void counters_add(int site, int64_t bytes);

/* What this process has sent to other sites since the start. */
struct crossings {
    int64_t messages, bytes;
};

/* Tests find these with dlsym; the program does not see them. Each binary interface has its own names,
 * because libraries for two interfaces may be loaded. */
#if defined(OPEN_MPI)
#define causeway_crossings causeway_crossings_openmpi
#define causeway_crossings_to causeway_crossings_openmpi_to
#elif defined(CAUSEWAY_STANDARD_ABI)
#define causeway_crossings causeway_crossings_abi
#define causeway_crossings_to causeway_crossings_abi_to
#else
#define causeway_crossings causeway_crossings_mpich
#define causeway_crossings_to causeway_crossings_mpich_to
#endif
EXPORT void causeway_crossings(struct crossings *crossings);
/* The same for one of the first 16 sites, numbered as in the communicators that were used. Zero for other
 * sites. */
EXPORT void causeway_crossings_to(int site, struct crossings *crossings);

#endif
