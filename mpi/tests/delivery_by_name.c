/* See delivery.c: one that finds what it calls for windows by name, of which nothing that is loaded tells. */
#define _GNU_SOURCE
#include <dlfcn.h>
#define PUT
#include "delivery.c"

#define CALL(name) ((__typeof__(name) *)dlsym(RTLD_DEFAULT, #name))
#include "delivery_put.c"
