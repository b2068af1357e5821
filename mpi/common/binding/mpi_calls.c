#define _GNU_SOURCE
#include "common/binding/mpi_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct mpi_calls real;
struct mpi_handles handle;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int found_all, fits;

/* File names of MPIs with the binary interface that this library was built for. */
static const char *const libraries[] = {
#if defined(OPEN_MPI)
    "libmpi.so.40",
#elif defined(CAUSEWAY_STANDARD_ABI)
    "libmpi_abi.so.1",
#else
    "libmpi.so.12",
    "libmpich.so.12",
#endif
};

void *mpi_calls_of_world(const char *name)
{
#if defined(CAUSEWAY_WORLD_LIBRARY)
    void *library = dlopen(CAUSEWAY_WORLD_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library);
    return found;
#else
    (void)name;
    return NULL;
#endif
}

int mpi_calls_are_worlds(void)
{
    return getenv("CAUSEWAY_WORLD") && mpi_calls_of_world("causeway_world_work");
}

/* Finds a function of the MPI, or of the world library, which stands in for it where sites run their own
 * MPIs. It looks up libraries by name, without loading them, for two reasons. Python loads its MPI with
 * dlopen() and local scope, where RTLD_NEXT does not look. And after this library there may be its build for
 * another binary interface, whose handles have another size. If the MPI has another interface, RTLD_NEXT
 * finds that build, if any. */
static void *next(const char *name)
{
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            fits = 1;
            found = mpi_calls_of_world(name);
            found = found ? found : dlsym(library, name);
            dlclose(library);
        }
    }
    /* The build for another interface must not be asked for a function that this MPI lacks: it would truncate
     * the handles. */
    return found || fits ? found : dlsym(RTLD_NEXT, name);
}

void *mpi_calls_first(const char *name)
{
    /* The program's handle, which is never closed. If two threads open it at the same time, both get the same
     * one. */
    static _Atomic(void *) kept;
    void *program = kept;
    if (!program)
        kept = program = dlopen(NULL, RTLD_LAZY);
    return dlsym(program ? program : RTLD_DEFAULT, name);
}

/* The object may be in the program itself (copy relocation), where RTLD_NEXT does not look. */
void *mpi_calls_object(const char *name)
{
    void *found = mpi_calls_first(name);
    return found ? found : next(name);
}

static void load(void)
{
    int all = 1;
#define CALL(name) all &= (real.name = (__typeof__(real.name))next("PMPI_" #name)) != NULL;
    MPI_CALLS(CALL)
#undef CALL
    found_all = all;
#if defined(OPEN_MPI)
#define OBJECT(field, symbol) \
    all &= (handle.field = (__typeof__(handle.field))mpi_calls_object(symbol)) != NULL
    OBJECT(comm_world, "ompi_mpi_comm_world");
    OBJECT(comm_self, "ompi_mpi_comm_self");
    OBJECT(comm_null, "ompi_mpi_comm_null");
    OBJECT(byte, "ompi_mpi_byte");
    OBJECT(datatype_null, "ompi_mpi_datatype_null");
    OBJECT(request_null, "ompi_request_null");
    OBJECT(errors_return, "ompi_mpi_errors_return");
    OBJECT(errors_are_fatal, "ompi_mpi_errors_are_fatal");
    OBJECT(op_null, "ompi_mpi_op_null");
    OBJECT(bitwise_or, "ompi_mpi_op_bor");
    OBJECT(most, "ompi_mpi_op_max");
    OBJECT(least, "ompi_mpi_op_min");
    OBJECT(info_null, "ompi_mpi_info_null");
    OBJECT(group_null, "ompi_mpi_group_null");
    OBJECT(group_empty, "ompi_mpi_group_empty");
#define TYPE(name, symbol) OBJECT(types[TYPE_##name], "ompi_mpi_" #symbol);
    MPI_TYPES(TYPE)
#undef TYPE
#undef OBJECT
#define TYPE(name, symbol)                                                           \
    handle.pairs[PAIR_##name] = (MPI_Datatype)mpi_calls_object("ompi_mpi_" #symbol); \
    if (!handle.pairs[PAIR_##name])                                                  \
        handle.pairs[PAIR_##name] = handle.datatype_null;
    MPI_PAIRS(TYPE)
#undef TYPE
#else
    handle = (struct mpi_handles){.comm_world = MPI_COMM_WORLD,
                                  .comm_self = MPI_COMM_SELF,
                                  .comm_null = MPI_COMM_NULL,
                                  .byte = MPI_BYTE,
                                  .datatype_null = MPI_DATATYPE_NULL,
                                  .request_null = MPI_REQUEST_NULL,
                                  .errors_return = MPI_ERRORS_RETURN,
                                  .errors_are_fatal = MPI_ERRORS_ARE_FATAL,
                                  .op_null = MPI_OP_NULL,
                                  .bitwise_or = MPI_BOR,
                                  .most = MPI_MAX,
                                  .least = MPI_MIN,
                                  .info_null = MPI_INFO_NULL,
                                  .group_null = MPI_GROUP_NULL,
                                  .group_empty = MPI_GROUP_EMPTY,
#define TYPE(name, symbol) MPI_##name,
                                  .types = {MPI_TYPES(TYPE)},
                                  .pairs = {MPI_PAIRS(TYPE)}};
#undef TYPE
#endif
    fits &= all;
}

void *mpi_calls_find(const char *name)
{
    char own[64], extension[64];
    snprintf(own, sizeof own, "PMPI_%s", name);
    snprintf(extension, sizeof extension, "PMPIX_%s", name);
    void *found = next(own);
    return found ? found : next(extension);
}

int mpi_calls_fit(void) { return mpi_calls_load() && fits; }

int mpi_calls_load(void)
{
    pthread_once(&once, load);
    return found_all;
}
