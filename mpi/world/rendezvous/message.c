#include "world/rendezvous/message.h"
#include "world/rendezvous/bytes.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static void put_text(struct writer *writer, const char *text)
{
    size_t n = strlen(text);
    writer->failed |= n > MESSAGE_MOST_TEXT;
    writer_number(writer, n, 2);
    writer_put(writer, text, n);
}

static void put_address(struct writer *writer, const struct sockaddr_storage *address)
{
    unsigned char ip[16] = {0};
    uint16_t port = 0;
    uint8_t family = 0;
    if (address->ss_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        memcpy(ip, &v4.sin_addr, sizeof v4.sin_addr);
        port = ntohs(v4.sin_port);
        family = 4;
    } else if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        memcpy(ip, &v6.sin6_addr, sizeof v6.sin6_addr);
        port = ntohs(v6.sin6_port);
        family = 6;
    } else {
        writer->failed = 1;
    }
    writer_number(writer, family, 1);
    writer_put(writer, ip, sizeof ip);
    writer_number(writer, port, 2);
}

/* Allocates a frame of this type with room for `body` bytes of body, and sets `writer` to the body. */
static unsigned char *begin(struct writer *writer, enum message_type type, size_t body)
{
    size_t n = MESSAGE_HEAD_BYTES + 1 + body;
    unsigned char *frame = malloc(n);
    *writer = (struct writer){frame, n, !frame};
    writer_number(writer, 0, MESSAGE_HEAD_BYTES);
    writer_number(writer, type, 1);
    return frame;
}

/* Completes the frame with its length, and returns it; NULL if something did not fit. */
static unsigned char *end(struct writer *writer, unsigned char *frame, size_t *n)
{
    if (writer->failed) {
        free(frame);
        return NULL;
    }
    *n = (size_t)(writer->at - frame);
    struct writer head = {frame, MESSAGE_HEAD_BYTES, 0};
    writer_number(&head, *n - MESSAGE_HEAD_BYTES, MESSAGE_HEAD_BYTES);
    return frame;
}

static void put_greeting(struct writer *writer, const char *site, const unsigned char *token)
{
    writer_number(writer, MESSAGE_VERSION, 1);
    writer_put(writer, token, MESSAGE_TOKEN_BYTES);
    put_text(writer, site);
}

unsigned char *message_join(const struct rendezvous_request *request, const char *site,
                            const unsigned char token[MESSAGE_TOKEN_BYTES], size_t *n)
{
    if (request->processes > WORLD_MOST_PROCESSES)
        return NULL;
    struct writer writer;
    size_t most = 64 + 2 * (2 + MESSAGE_MOST_TEXT) + (size_t)request->processes * MESSAGE_ADDRESS_BYTES;
    unsigned char *frame = begin(&writer, MESSAGE_JOIN, most);
    put_greeting(&writer, site, token);
    writer_number(&writer, request->processes, 4);
    put_text(&writer, request->mpi);
    writer_number(&writer, request->layout, 8);
    writer_number(&writer, request->forms, 1);
    writer_number(&writer, request->tag_ub, 4);
    writer_number(&writer, request->thread_level, 1);
    for (uint32_t i = 0; i < request->processes; i++)
        put_address(&writer, &request->addresses[i]);
    return end(&writer, frame, n);
}

unsigned char *message_process(const char *site, const unsigned char token[MESSAGE_TOKEN_BYTES], size_t *n)
{
    struct writer writer;
    unsigned char *frame = begin(&writer, MESSAGE_PROCESS, 64 + MESSAGE_MOST_TEXT);
    put_greeting(&writer, site, token);
    return end(&writer, frame, n);
}

unsigned char *message_abort(uint32_t code, const char *text, size_t *n)
{
    struct writer writer;
    unsigned char *frame = begin(&writer, MESSAGE_ABORT, 64 + MESSAGE_MOST_TEXT);
    writer_number(&writer, code, 4);
    put_text(&writer, text);
    return end(&writer, frame, n);
}

unsigned char *message_done(size_t *n)
{
    struct writer writer;
    unsigned char *frame = begin(&writer, MESSAGE_DONE, 0);
    return end(&writer, frame, n);
}

size_t message_length(const unsigned char head[MESSAGE_HEAD_BYTES])
{
    struct reader reader = {head, MESSAGE_HEAD_BYTES, 0};
    uint64_t length = reader_number(&reader, MESSAGE_HEAD_BYTES);
    return length <= MESSAGE_MOST_BYTES ? (size_t)length : 0;
}

/* Returns a copy of a text, or NULL. A text with a zero byte is refused, because C would see another one. */
static char *read_text(struct reader *reader)
{
    size_t n = (size_t)reader_number(reader, 2);
    const unsigned char *bytes = n <= MESSAGE_MOST_TEXT ? reader_take(reader, n) : NULL;
    if (!bytes || memchr(bytes, 0, n)) {
        reader->failed = 1;
        return NULL;
    }
    char *text = malloc(n + 1);
    if (!text) {
        reader->failed = 1;
        return NULL;
    }
    memcpy(text, bytes, n);
    text[n] = 0;
    return text;
}

static void read_address(struct reader *reader, struct sockaddr_storage *address)
{
    uint64_t family = reader_number(reader, 1);
    const unsigned char *ip = reader_take(reader, 16);
    uint16_t port = (uint16_t)reader_number(reader, 2);
    memset(address, 0, sizeof *address);
    if (!ip || (family != 4 && family != 6)) {
        reader->failed = 1;
    } else if (family == 4) {
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&v4.sin_addr, ip, sizeof v4.sin_addr);
        memcpy(address, &v4, sizeof v4);
    } else {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&v6.sin6_addr, ip, sizeof v6.sin6_addr);
        memcpy(address, &v6, sizeof v6);
    }
}

/* Reads the names, sizes and forms of the sites. `first[i]` is the first process of site i, and
 * `first[site_count]` the number of processes. */
static void read_sites(struct reader *reader, struct world *world, uint32_t *first)
{
    uint64_t processes = 0;
    for (uint32_t i = 0; i < world->site_count; i++) {
        first[i] = (uint32_t)processes;
        world->site_names[i] = read_text(reader);
        processes += reader_number(reader, 4);
        world->forms[i] = (uint8_t)reader_number(reader, 1);
        if (reader->failed || processes > WORLD_MOST_PROCESSES) {
            reader->failed = 1;
            return;
        }
    }
    first[world->site_count] = world->size = (uint32_t)processes;
}

static void read_processes(struct reader *reader, struct world *world, const uint32_t *first)
{
    /* Only the addresses are left. Checked first, so that no memory is allocated for bytes that have not
     * arrived. */
    if (reader->failed || reader->left != (size_t)world->size * MESSAGE_ADDRESS_BYTES) {
        reader->failed = 1;
        return;
    }
    world->processes = calloc(world->size ? world->size : 1, sizeof *world->processes);
    reader->failed = !world->processes;
    for (uint32_t site = 0; site < world->site_count && !reader->failed; site++) {
        for (uint32_t i = first[site]; i < first[site + 1]; i++) {
            struct process *process = &world->processes[i];
            process->site = site;
            process->native_rank = i - first[site];
            read_address(reader, &process->address);
        }
    }
}

/* Finds this process; returns 0 if it is in the world. */
static int place(struct world *world, const uint32_t *first, const char *site, uint32_t native_rank)
{
    for (uint32_t i = 0; i < world->site_count; i++) {
        if (strcmp(world->site_names[i], site) == 0) {
            world->first_here = first[i];
            world->here = first[i + 1] - first[i];
            world->me = first[i] + native_rank;
            return native_rank < world->here ? 0 : -1;
        }
    }
    return -1;
}

int message_read_world(const unsigned char *bytes, size_t n, const char *site, uint32_t native_rank,
                       struct world *world)
{
    struct reader reader = {bytes, n, 0};
    memset(world, 0, sizeof *world);
    reader.failed = reader_number(&reader, 1) != MESSAGE_WORLD;
    world->number = reader_number(&reader, 8);
    world->tag_ub = (uint32_t)reader_number(&reader, 4);
    uint64_t sites = reader_number(&reader, 4);
    if (reader.failed || sites == 0 || sites > WORLD_MOST_SITES)
        return -1;
    world->site_count = (uint32_t)sites;
    world->site_names = calloc(sites, sizeof *world->site_names);
    world->forms = calloc(sites, sizeof *world->forms);
    uint32_t *first = calloc(sites + 1, sizeof *first);
    reader.failed = !world->site_names || !world->forms || !first;
    if (!reader.failed) {
        read_sites(&reader, world, first);
        read_processes(&reader, world, first);
    }
    if (reader.failed || place(world, first, site, native_rank) != 0) {
        free(first);
        message_free_world(world);
        return -1;
    }
    free(first);
    return 0;
}

void message_free_world(struct world *world)
{
    for (uint32_t i = 0; world->site_names && i < world->site_count; i++)
        free(world->site_names[i]);
    free(world->site_names);
    free(world->forms);
    free(world->processes);
    memset(world, 0, sizeof *world);
}

/* Reads the last text of a frame, truncated to the room there is. */
static int read_last_text(struct reader *reader, char *text, size_t room)
{
    char *whole = read_text(reader);
    int sound = whole && reader->left == 0;
    if (sound && room > 0) {
        size_t n = strlen(whole) < room ? strlen(whole) : room - 1;
        memcpy(text, whole, n);
        text[n] = 0;
    }
    free(whole);
    return sound ? 0 : -1;
}

int message_read_no(const unsigned char *bytes, size_t n, char *text, size_t room)
{
    struct reader reader = {bytes, n, 0};
    reader.failed = reader_number(&reader, 1) != MESSAGE_NO;
    return read_last_text(&reader, text, room);
}

int message_read_abort(const unsigned char *bytes, size_t n, uint32_t *code, char *text, size_t room)
{
    struct reader reader = {bytes, n, 0};
    reader.failed = reader_number(&reader, 1) != MESSAGE_ABORT;
    *code = (uint32_t)reader_number(&reader, 4);
    return read_last_text(&reader, text, room);
}
