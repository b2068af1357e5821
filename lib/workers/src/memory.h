/* Memory that is there, or the job ends: a rank that lacks it cannot tell the others in time. */
#ifndef CAUSEWAY_WORKERS_MEMORY_H
#define CAUSEWAY_WORKERS_MEMORY_H

#include <stddef.h>

/* Says that there are not so many bytes, and ends this process. */
_Noreturn void workers_no_memory(size_t bytes);

/* `bytes` zeros. */
void *workers_new(size_t bytes);

/* `*array` has room for `count` elements and one more. */
void *workers_grown(void *array, size_t count, size_t *room, size_t element_bytes);

#endif
