/* See delivery.c. */
#define WINDOWS
#include "delivery.c"
