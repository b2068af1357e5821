#define _GNU_SOURCE
#include "collectives/binding/fatal.h"

#include "common/binding/mpi_calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* MPICH's MPI_Abort has the launcher kill all at once. That lost what was said before in one case of ten. */
void fatal(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "causeway collectives: %s\n", text);
    real.Comm_set_errhandler(handle.comm_world, handle.errors_are_fatal);
    real.Comm_call_errhandler(handle.comm_world, MPI_ERR_OTHER);
    abort();
}

void *must_have(void *memory)
{
    if (!memory)
        fatal("out of memory: no room for what a rank must know of the others");
    return memory;
}
