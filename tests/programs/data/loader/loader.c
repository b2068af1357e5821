/* causeway-data INTERFACE LIBRARY[:LIBRARY...] [arguments]: the data test with whichever MPI of a binary
 * interface there is.
 *
 * Programs are linked with one MPI; this one takes the first of some libraries that can be loaded, as
 * Python's MPI does. So `causeway check --data` needs no compiler where it runs. The test itself is
 * libcauseway_data_INTERFACE.so beside it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The status for what has to be put right before anything can be tested. */
#define CANNOT_START 3

static void *load_mpi(char *libraries)
{
    char why[1000] = "none is named";
    for (char *rest = libraries, *name; (name = strtok_r(rest, ":", &rest));) {
        void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
        if (library)
            return library;
        snprintf(why, sizeof why, "%s", dlerror());
    }
    fprintf(stderr, "causeway-data: no library of the MPI can be loaded on this node; the last try: %s\n",
            why);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: causeway-data openmpi|mpich|abi LIBRARY[:LIBRARY...] [arguments]\n");
        return 2;
    }
    char own[PATH_MAX] = "", path[PATH_MAX + 64];
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0 || !load_mpi(argv[2]))
        return CANNOT_START;
    snprintf(path, sizeof path, "%s/libcauseway_data_%s.so", dirname(own), argv[1]);
    void *test = dlopen(path, RTLD_NOW);
    int (*run)(int, char **) = test ? (int (*)(int, char **))dlsym(test, "causeway_data") : NULL;
    if (!run) {
        fprintf(stderr, "causeway-data: %s; is this the MPI's binary interface?\n", dlerror());
        return CANNOT_START;
    }
    argv[2] = argv[0];
    return run(argc - 2, argv + 2);
}
