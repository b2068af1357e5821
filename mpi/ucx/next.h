/* Finds the function that a hook overrides. */
#ifndef CAUSEWAY_MPICH_UCX_NEXT_H
#define CAUSEWAY_MPICH_UCX_NEXT_H

#include <dlfcn.h>
#include <stddef.h>

/* Returns the function that would have been called without this library. Python loads its MPI with dlopen()
 * and local scope, where RTLD_NEXT does not look. So the function is then looked up in libraries by name,
 * without loading them. */
static inline void *next(const char *name)
{
    static const char *libraries[] = {"libucp.so.0", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"};
    void *found = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            found = dlsym(library, name);
            dlclose(library);
        }
    }
    return found;
}

#endif
