/* A library that loads, when it is called and not before, the one that makes windows: DELIVERY_PLUGIN. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int put(const char *way)
{
    const char *path = getenv("DELIVERY_PLUGIN");
    void *plugin = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*next)(const char *) = plugin ? (int (*)(const char *))dlsym(plugin, "put") : NULL;
    if (!next)
        fprintf(stderr, "DELIVERY_PLUGIN=%s has no put: %s\n", path ? path : "", dlerror());
    return next && next(way);
}
