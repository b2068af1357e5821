#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

void workers_no_memory(size_t bytes)
{
    fprintf(stderr, "causeway_workers: no memory for %zu bytes\n", bytes);
    abort();
}

static void *checked(void *memory, size_t bytes)
{
    if (!memory)
        workers_no_memory(bytes);
    return memory;
}

void *workers_new(size_t bytes) { return checked(calloc(1, bytes ? bytes : 1), bytes); }

void *workers_grown(void *array, size_t count, size_t *room, size_t element_bytes)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 8;
    return checked(realloc(array, *room * element_bytes), *room * element_bytes);
}
