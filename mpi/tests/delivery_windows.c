/* See delivery.c: one that makes windows itself. */
#define PUT
#include "delivery.c"

#include "delivery_put.c"
