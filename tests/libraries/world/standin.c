/* standin [BYTES]: stands in for a site's ranks, without an MPI: one process, which joins the world that
 * `causeway run --at` makes, exchanges so many bytes with each far process, in order, and is done. */
#include "plain_engine.h"
#include "world/rendezvous/rendezvous.h"
#include "world/streams/streams.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *why)
{
    fprintf(stderr, "standin: %s\n", why);
    exit(1);
}

/* MPI_Abort of a program, for tests: says so and fails. */
static void abort_if_asked(const struct world *world, const char *word)
{
    if (word && strcmp(word, "abort") == 0 && world->me + 1 == world->size) {
        rendezvous_abort(7, "the last process called MPI_Abort(7)");
        exit(7);
    }
}

static void exchange(const struct world *world, struct engine *engine, uint64_t bytes)
{
    for (uint32_t peer = 0; peer < world->size; peer++) {
        if (peer == world->me)
            continue;
        plain_send(engine, peer, bytes);
        streams_want(peer);
    }
    for (uint32_t peer = 0; peer < world->size; peer++)
        while (peer != world->me && engine->peers[peer].received < bytes)
            if (streams_progress(1000) < 0 || engine->peers[peer].lost)
                fail(engine->peers[peer].reason);
    if (engine->wrong)
        fail("bytes came otherwise than they were sent");
}

int main(int count, char **words)
{
    char why[1500] = "";
    struct sockaddr_storage address;
    struct world world;
    unsigned char *bytes = NULL;
    size_t n = 0;
    int wanted = rendezvous_wanted(why, sizeof why);
    if (wanted <= 0)
        fail(wanted == 0 ? "there is no world to join" : why);
    int listener = rendezvous_listen(&address, why, sizeof why);
    if (listener < 0)
        fail(why);
    struct rendezvous_request request = {
        .mpi = "none", .tag_ub = 32767, .processes = 1, .addresses = &address, .layout = count > 2 ? 1 : 0};
    if (rendezvous_world(&request, &bytes, &n, why, sizeof why) != 0)
        fail(why);
    if (message_read_world(bytes, n, rendezvous_site(), 0, &world) != 0 || world.size > MOST_PEERS)
        fail("the world is not understood");
    free(bytes);
    abort_if_asked(&world, count > 1 ? words[1] : NULL);
    struct engine engine = {.me = world.me};
    if (streams_start(&world, listener, &engine) != 0)
        fail("streams do not start");
    exchange(&world, &engine, count > 1 ? strtoull(words[1], NULL, 10) : 1000);
    engine_say_bye(&engine);
    streams_stop(20000);
    rendezvous_done();
    printf("process %u of %u at %s: all right\n", world.me, world.size, rendezvous_site());
    message_free_world(&world);
    return 0;
}
