/* Frames between a site's native rank 0 and the rendezvous: as fixed bytes, there and back, cut, longer, and
 * damaged; and the environment of a process. */
#include "world/rendezvous/message.h"
#include "world/rendezvous/settings.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds)                                                                  \
    do {                                                                              \
        if (!(holds)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static const unsigned char token[MESSAGE_TOKEN_BYTES] = "0123456789abcdef";

static struct sockaddr_storage at(const char *text)
{
    struct sockaddr_storage address;
    CHECK(settings_address(text, &address) == 0);
    return address;
}

static void the_bytes_of_join_are_fixed(void)
{
    struct sockaddr_storage addresses[] = {at("10.1.0.2:4000"), at("[fd00::1]:1")};
    struct rendezvous_request request = {"X 1", 0x0102030405060708, 0x32, 1000, 3, 2, addresses};
    size_t n = 0;
    unsigned char *frame = message_join(&request, "a", token, &n);
    CHECK(frame);
    unsigned char wanted[] = "\x52\0\0\0\1\2"
                             "0123456789abcdef\1\0a\2\0\0\0\3\0X 1\x8\7\6\5\4\3\2\1\x32\xe8\3\0\0\3"
                             "\4\xa\1\0\2\0\0\0\0\0\0\0\0\0\0\0\0\xa0\xf"
                             "\6\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\1\0";
    CHECK(n == sizeof wanted - 1 && memcmp(frame, wanted, n) == 0);
    free(frame);
    addresses[1].ss_family = AF_UNIX;
    CHECK(!message_join(&request, "a", token, &n));
    request.processes = WORLD_MOST_PROCESSES + 1;
    CHECK(!message_join(&request, "a", token, &n));
    char longest[MESSAGE_MOST_TEXT + 2];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK(!message_process(longest, token, &n));
}

/* WORLD as the rendezvous sends it, behind the length; message.rs has a test of the same bytes. */
static const unsigned char a_world[] = "\2\2\1\0\0\0\0\0\0\5\0\0\0\2\0\0\0\1\0a\1\0\0\0\1\2\0bc\2\0\0\0\x32"
                                       "\4\xa\1\0\2\0\0\0\0\0\0\0\0\0\0\0\0\xa0\xf"
                                       "\4\xa\2\0\1\0\0\0\0\0\0\0\0\0\0\0\0\xa0\xf"
                                       "\6\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\1\0";
enum { WORLD_BYTES = sizeof a_world - 1 };

static void a_world_is_read_as_it_was_meant(void)
{
    struct world world;
    CHECK(message_read_world(a_world, WORLD_BYTES, "bc", 1, &world) == 0);
    CHECK(world.number == 0x0102 && world.tag_ub == 5 && world.size == 3 && world.site_count == 2);
    CHECK(world.first_here == 1 && world.here == 2 && world.me == 2 && !world_is_here(&world, 0));
    CHECK(strcmp(world.site_names[0], "a") == 0 && strcmp(world.site_names[1], "bc") == 0);
    CHECK(world.forms[0] == 1 && world.forms[1] == 0x32);
    CHECK(world.processes[1].site == 1 && world.processes[1].native_rank == 0);
    struct sockaddr_in first;
    memcpy(&first, &world.processes[0].address, sizeof first);
    CHECK(first.sin_family == AF_INET && first.sin_port == htons(4000) &&
          first.sin_addr.s_addr == inet_addr("10.1.0.2"));
    CHECK(world.processes[2].address.ss_family == AF_INET6);
    message_free_world(&world);
    CHECK(message_read_world(a_world, WORLD_BYTES, "c", 0, &world) != 0);
    CHECK(message_read_world(a_world, WORLD_BYTES, "a", 1, &world) != 0);
}

/* Copies on the heap, so that the sanitizer sees a read beyond them. */
static int read_copy(const unsigned char *bytes, size_t n)
{
    unsigned char *copy = malloc(n ? n : 1);
    struct world world;
    memcpy(copy, bytes, n);
    int result = message_read_world(copy, n, "bc", 1, &world);
    if (result == 0)
        message_free_world(&world);
    free(copy);
    return result;
}

static void a_cut_longer_or_oversized_world_is_refused(void)
{
    unsigned char bytes[WORLD_BYTES + 1];
    memcpy(bytes, a_world, WORLD_BYTES);
    bytes[WORLD_BYTES] = 0;
    for (size_t n = 0; n < WORLD_BYTES; n++)
        CHECK(read_copy(bytes, n) != 0);
    CHECK(read_copy(bytes, WORLD_BYTES) == 0 && read_copy(bytes, WORLD_BYTES + 1) != 0);
    /* Numbers of sites, and of a site's processes. */
    for (size_t where = 13; where <= 20; where += 7) {
        memset(bytes + where, 0xff, 4);
        CHECK(read_copy(bytes, WORLD_BYTES) != 0);
        memcpy(bytes, a_world, WORLD_BYTES);
    }
    CHECK(message_length((const unsigned char[]){1, 0, 0, 1}) == 0);
    CHECK(message_length((const unsigned char[]){0, 0, 0, 0}) == 0);
    CHECK(message_length((const unsigned char[]){0, 0, 0, 1}) == MESSAGE_MOST_BYTES);
}

static void damaged_bytes_do_no_harm(void)
{
    unsigned char bytes[WORLD_BYTES];
    memcpy(bytes, a_world, WORLD_BYTES);
    for (size_t where = 0; where < WORLD_BYTES; where++) {
        for (int value = 0; value < 256; value++) {
            bytes[where] = (unsigned char)value;
            read_copy(bytes, WORLD_BYTES);
        }
        bytes[where] = a_world[where];
    }
}

static void reasons_are_read_and_cut_to_their_room(void)
{
    size_t n = 0;
    uint32_t code = 0;
    char text[5];
    unsigned char *frame = message_abort(7, "rank 5", &n);
    CHECK(message_read_abort(frame + MESSAGE_HEAD_BYTES, n - MESSAGE_HEAD_BYTES, &code, text, sizeof text) ==
          0);
    CHECK(code == 7 && strcmp(text, "rank") == 0);
    for (size_t cut = MESSAGE_HEAD_BYTES; cut < n; cut++)
        CHECK(message_read_abort(frame + MESSAGE_HEAD_BYTES, cut - MESSAGE_HEAD_BYTES, &code, text,
                                 sizeof text) != 0);
    free(frame);
    CHECK(message_read_no((const unsigned char *)"\3\1\0x", 4, text, sizeof text) == 0 &&
          strcmp(text, "x") == 0);
    CHECK(message_read_no((const unsigned char *)"\3\1\0\0", 4, text, sizeof text) != 0);
    frame = message_done(&n);
    CHECK(n == 5 && memcmp(frame, "\1\0\0\0\5", n) == 0);
    free(frame);
}

static void the_environment_is_understood_or_told(void)
{
    static const char hex[] = "30313233343536373839616263646566";
    struct settings settings;
    char why[300] = "";
    CHECK(settings_parse(NULL, hex, &settings, why, sizeof why) == 0);
    CHECK(settings_parse("2,rennes,10.1.0.253:4000", hex, &settings, why, sizeof why) == 1);
    CHECK(strcmp(settings.site, "rennes") == 0 && memcmp(settings.token, token, sizeof token) == 0);
    CHECK(settings_parse("2,rennes,[fd00::1]:4000", hex, &settings, why, sizeof why) == 1);
    const char *wrong[] = {"",
                           "2",
                           "2,",
                           "2,rennes",
                           "2,,1.2.3.4:5",
                           "2,a,1.2.3.4:0",
                           "2,a,1.2.3.4",
                           "2,a,1.2:99",
                           "2,a,fd00::1:5",
                           "3,a,1.2.3.4:5",
                           "2,a,1.2.3.4:5x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        why[0] = 0;
        CHECK(settings_parse(wrong[i], hex, &settings, why, sizeof why) == -1 && why[0]);
    }
    CHECK(settings_parse("2,a,1.2.3.4:5", NULL, &settings, why, sizeof why) == -1);
    CHECK(settings_parse("2,a,1.2.3.4:5", "zz", &settings, why, sizeof why) == -1);
}

int main(void)
{
    the_bytes_of_join_are_fixed();
    a_world_is_read_as_it_was_meant();
    a_cut_longer_or_oversized_world_is_refused();
    damaged_bytes_do_no_harm();
    reasons_are_read_and_cut_to_their_room();
    the_environment_is_understood_or_told();
    printf("join: all right\n");
    return 0;
}
