/* See delivery.c. This one makes windows itself. */
#define PUT
#include "delivery.c"

#include "delivery_put.c"
