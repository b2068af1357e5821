#define _GNU_SOURCE
#include "collectives/transfer/counters.h"

#include <stdatomic.h>

/* Messages to each of the first COUNTED_SITES sites are counted separately. */
#define COUNTED_SITES 16

static _Atomic int64_t crossed_messages, crossed_bytes, messages_to[COUNTED_SITES], bytes_to[COUNTED_SITES];

void counters_add(int site, int64_t bytes)
{
    atomic_fetch_add_explicit(&crossed_messages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&crossed_bytes, bytes, memory_order_relaxed);
    if (site < COUNTED_SITES) {
        atomic_fetch_add_explicit(&messages_to[site], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&bytes_to[site], bytes, memory_order_relaxed);
    }
}

void causeway_crossings(struct crossings *crossings)
{
    crossings->messages = atomic_load(&crossed_messages);
    crossings->bytes = atomic_load(&crossed_bytes);
}

void causeway_crossings_to(int site, struct crossings *crossings)
{
    int counted = site >= 0 && site < COUNTED_SITES;
    crossings->messages = counted ? atomic_load(&messages_to[site]) : 0;
    crossings->bytes = counted ? atomic_load(&bytes_to[site]) : 0;
}
