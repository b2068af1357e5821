#define _GNU_SOURCE
#include "world/native/ending.h"

#include "world/handles/ours.h"
#include "world/rendezvous/rendezvous.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A process that ends takes its streams with it. Its launcher reports the cause only later; within this time
 * that report ends us, so that the user reads the cause. */
enum { GRACE_SECONDS = 2 };

static void end_site(const char *text)
{
    fprintf(stderr, "causeway world: %s\n", text);
    rendezvous_abort(1, text);
    real.Abort(handle.comm_world, 1);
    abort();
}

void ending_now(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    end_site(text);
    abort();
}

void ending_check(void)
{
    uint32_t peer;
    const char *why = engine_lost(ours.engine, &peer);
    if (!why)
        return;
    nanosleep(&(struct timespec){.tv_sec = GRACE_SECONDS}, NULL);
    const struct world *world = &ours.world;
    ending_now("rank %u at %s lost rank %u at %s: %s", world->me,
               world->site_names[world->processes[world->me].site], peer,
               world->site_names[world->processes[peer].site], why);
}

void ending_heard(void)
{
    uint32_t code = 1;
    char text[MESSAGE_MOST_TEXT + 1] = "";
    int heard = rendezvous_heard(&code, text, sizeof text);
    if (heard == 0)
        return;
    if (heard < 0)
        fprintf(stderr,
                "causeway world: the connection to `causeway run` has ended; this site's job ends with it\n");
    real.Abort(handle.comm_world, code ? (int)code : 1);
    abort();
}
