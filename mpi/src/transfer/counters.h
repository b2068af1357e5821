/* What crossed between sites, for tests. */
#ifndef CAUSEWAY_COUNTERS_H
#define CAUSEWAY_COUNTERS_H

#include "binding/export.h"

#include <stdint.h>

/* Of a message that this process sends to another site. */
void counters_add(int site, int64_t bytes);

/* What crossed from this rank's site: messages and bytes sent by this process to other sites since the
 * start. */
struct crossings {
    int64_t messages, bytes;
};

/* Tests read it (dlsym); the program does not see it. Each binary interface has its own: two libraries may be
 * there. */
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
/* The same to one site, numbered as in the communicators that were used, of the first 16; none of the
 * others. */
EXPORT void causeway_crossings_to(int site, struct crossings *crossings);

#endif
