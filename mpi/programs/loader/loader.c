/* causeway-loader PROGRAM INTERFACE LIBRARY[:LIBRARY...] [arguments]: runs an MPI program with any installed
 * MPI of a binary interface.
 *
 * Programs are usually linked with one MPI; this one takes the first of several libraries that can be loaded,
 * as Python's MPI does. So `causeway check --data` and `causeway bench` need no compiler where they run. The
 * program itself is libcauseway_PROGRAM_INTERFACE.so in the same directory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The exit status for errors that must be corrected before anything can run. */
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
    fprintf(stderr, "causeway-loader: no library of the MPI can be loaded on this node; the last try: %s\n",
            why);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: causeway-loader data|bench openmpi|mpich LIBRARY[:LIBRARY...] [arguments]\n");
        return 2;
    }
    char own[PATH_MAX] = "", path[PATH_MAX + 128], name[64];
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0 || !load_mpi(argv[3]))
        return CANNOT_START;
    snprintf(path, sizeof path, "%s/libcauseway_%s_%s.so", dirname(own), argv[1], argv[2]);
    snprintf(name, sizeof name, "causeway_%s", argv[1]);
    void *program = dlopen(path, RTLD_NOW);
    int (*run)(int, char **) = program ? (int (*)(int, char **))dlsym(program, name) : NULL;
    if (!run) {
        fprintf(stderr, "causeway-loader: %s; is this the MPI's binary interface?\n", dlerror());
        return CANNOT_START;
    }
    argv[3] = argv[0];
    return run(argc - 3, argv + 3);
}
