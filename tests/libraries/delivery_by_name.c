/* See delivery.c. This one finds what it calls for windows by name, so nothing that is loaded tells of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#define PUT
#include "delivery.c"

#define CALL(name) ((__typeof__(name) *)dlsym(RTLD_DEFAULT, #name))
#include "delivery_put.c"
