#define _GNU_SOURCE
#include "collectives/binding/fatal.h"

#include "common/binding/mpi_calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* MPICH's MPI_Abort makes the launcher kill all processes at once, which lost the message in one run of ten.
 * So this calls MPI_COMM_WORLD's error handler, after making it the fatal one. */
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
