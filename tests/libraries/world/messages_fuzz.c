/* Frames that the rendezvous, or whoever answers in its place, sends to native rank 0 of a site: read into a
 * world that is sound, or refused. The input: which process reads, then the frame behind its length, or all
 * that comes on the connection. libFuzzer drives it, or fuzz_random.c. */
#include "world/rendezvous/rendezvous.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                       \
    do {                                                                  \
        if (!(what)) {                                                    \
            fprintf(stderr, "messages_fuzz.c:%d: %s\n", __LINE__, #what); \
            abort();                                                      \
        }                                                                 \
    } while (0)

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

static void check_world(const struct world *world, const char *site, uint32_t native_rank)
{
    CHECK(world->size <= WORLD_MOST_PROCESSES && world->me < world->size);
    CHECK(world->site_count > 0 && world->site_count <= WORLD_MOST_SITES);
    CHECK(world_is_here(world, world->me) && world->me == world->first_here + native_rank);
    uint32_t mine = world->processes[world->me].site, before = 0, ranks = 0;
    CHECK(strcmp(world->site_names[mine], site) == 0);
    for (uint32_t i = 0; i < world->site_count; i++)
        CHECK(strlen(world->site_names[i]) <= MESSAGE_MOST_TEXT);
    for (uint32_t i = 0; i < world->size; i++) {
        const struct process *process = &world->processes[i];
        CHECK(process->site < world->site_count && process->site >= before);
        ranks = process->site == before ? ranks : 0;
        CHECK(process->native_rank == ranks);
        ranks++;
        before = process->site;
        CHECK(process->address.ss_family == AF_INET || process->address.ss_family == AF_INET6);
        CHECK(world_is_here(world, i) == (process->site == mine));
    }
}

/* What was read is what is written again. */
static void check_abort(uint32_t code, const char *text, const unsigned char *bytes, size_t n)
{
    size_t again = 0;
    unsigned char *frame = message_abort(code, text, &again);
    CHECK(frame && again == MESSAGE_HEAD_BYTES + n && message_length(frame) == n);
    CHECK(memcmp(frame + MESSAGE_HEAD_BYTES, bytes, n) == 0);
    free(frame);
}

/* Set where the input is all that comes on the connection. */
enum { IS_CONNECTION = 0x80 };

static int near_end, far_end;

int fuzz_socket(int family, int type, int protocol)
{
    CHECK(family == AF_INET && type == (SOCK_STREAM | SOCK_CLOEXEC) && protocol == 0);
    return near_end;
}

int fuzz_connect(int fd, const struct sockaddr *address, socklen_t n)
{
    CHECK(fd == near_end && n == sizeof(struct sockaddr_in) && address->sa_family == AF_INET);
    return 0;
}

/* From MPI_Init to MPI_Finalize. */
static void live(const unsigned char *bytes, size_t n)
{
    char why[100] = "";
    setenv("CAUSEWAY_WORLD", "2,bc,10.1.0.253:4000", 1);
    setenv("CAUSEWAY_TOKEN", "30313233343536373839616263646566", 1);
    CHECK(rendezvous_wanted(why, sizeof why) == 1);
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    near_end = pair[0];
    far_end = pair[1];
    CHECK(send(far_end, bytes, n, 0) == (ssize_t)n && shutdown(far_end, SHUT_WR) == 0);
    struct sockaddr_storage address = {.ss_family = AF_INET};
    struct rendezvous_request request = {.mpi = "X 1", .processes = 1, .addresses = &address};
    unsigned char *frame = NULL;
    size_t length = 0;
    if (rendezvous_world(&request, &frame, &length, why, sizeof why) == 0) {
        struct world world;
        if (message_read_world(frame, length, "bc", 0, &world) == 0) {
            check_world(&world, "bc", 0);
            message_free_world(&world);
        }
        free(frame);
        uint32_t code;
        int heard = 0;
        for (size_t i = 0; i <= n && heard == 0; i++)
            heard = rendezvous_heard(&code, why, 8);
        CHECK(heard != 0 && strlen(why) < sizeof why);
        rendezvous_done();
    } else {
        CHECK(why[0] || n > 0);
    }
    CHECK(rendezvous_descriptor() == -1);
    close(far_end);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
    static const char *const sites[] = {"a", "bc", "rennes", ""};
    if (n == 0)
        return 0;
    if (bytes[0] & IS_CONNECTION) {
        live(bytes + 1, n - 1);
        return 0;
    }
    const char *site = sites[bytes[0] & 3];
    uint32_t native_rank = bytes[0] >> 2;
    bytes++, n--;
    struct world world;
    if (message_read_world(bytes, n, site, native_rank, &world) == 0) {
        check_world(&world, site, native_rank);
        message_free_world(&world);
    }
    char text[MESSAGE_MOST_TEXT + 1], few[8];
    uint32_t code;
    if (message_read_abort(bytes, n, &code, text, sizeof text) == 0)
        check_abort(code, text, bytes, n);
    int is_no = message_read_no(bytes, n, text, sizeof text) == 0;
    CHECK(is_no == (message_read_no(bytes, n, few, sizeof few) == 0));
    CHECK(!is_no || (strncmp(few, text, sizeof few - 1) == 0 && strlen(few) < sizeof few));
    if (n >= MESSAGE_HEAD_BYTES)
        CHECK(message_length(bytes) <= MESSAGE_MOST_BYTES);
    return 0;
}
