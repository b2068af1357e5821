/* Persistent sends, by their requests. */
#ifndef CAUSEWAY_REQUESTS_H
#define CAUSEWAY_REQUESTS_H

#include "common/binding/export.h"

#include <stdint.h>

void requests_keep(MPI_Request request, const char *call, int to, int64_t bytes);
/* Counts the send of a request that was kept; ignores other requests. */
void requests_started(MPI_Request request);
void requests_forget(MPI_Request request);

#endif
