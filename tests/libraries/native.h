/* Calls the MPI's own collectives, past the preload library; in a world of several MPIs, that world's. */
#ifndef CAUSEWAY_NATIVE_H
#define CAUSEWAY_NATIVE_H

/* RTLD_DEFAULT needs this, so this header comes first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(OPEN_MPI)
#define WORLD "libcauseway_world_openmpi.so"
#elif defined(STANDARD_ABI)
#define WORLD "libcauseway_world_abi.so"
#else
#define WORLD "libcauseway_world_mpich.so"
#endif

static inline void *native_symbol(const char *name)
{
    static const char *libraries[] = {WORLD, "libmpi.so.40", "libmpich.so.12", "libmpi.so.12",
                                      "libmpi_abi.so.1"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        void *found = library ? dlsym(library, name) : NULL;
        if (found)
            return found;
    }
    fprintf(stderr, "no %s in any MPI library of this process\n", name);
    exit(2);
}

#if defined(OPEN_MPI)
#define CROSSINGS "causeway_crossings_openmpi"
#elif defined(STANDARD_ABI)
#define CROSSINGS "causeway_crossings_abi"
#else
#define CROSSINGS "causeway_crossings_mpich"
#endif

/* Whether sites run MPIs of their own. */
__attribute__((unused)) static inline int in_world(void)
{
    return dlopen(WORLD, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

/* Whether the MPI lets others take part in its progress. Where it does, collectives that go on beside the
 * program are improved. In a world of several MPIs that library does. */
static inline int lets_others_progress(void)
{
    if (in_world())
        return 1;
#if defined(OPEN_MPI)
    return 1;
#elif defined(STANDARD_ABI)
    return 0;
#else
    return dlsym(RTLD_DEFAULT, "MPIX_Async_start") != NULL;
#endif
}

/* Open MPI 4 calls persistent collectives by another name. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

#define NATIVE(name) ((__typeof__(PMPI_##name) *)native_symbol("PMPI_" #name))

#endif
