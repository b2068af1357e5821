#include "exchange.h"

#include "left_out.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This many exchanges run together, so that the run does not mostly wait for latency. */
#define TOGETHER 64
#define BYTES_TOGETHER (6 << 20)

/* Larger messages are not sent buffered. The buffer has room for several batches, because sends of an earlier
 * batch may still be in transit. */
#define BUFFERED_BYTES (1 << 20)
#define BUFFER_BYTES (16 << 20)

enum send_mode {
    SEND_STARTED,
    SEND,
    SYNCHRONOUS_STARTED,
    SYNCHRONOUS,
    BUFFERED,
    READY_STARTED,
    PERSISTENT_SEND,
    SEND_MODES
};
enum receive_mode { POSTED, FROM_ANY, PERSISTENT_RECEIVE, LATE, PROBED, MATCHED, RECEIVE_MODES };

static const char *const send_names[SEND_MODES] = {"MPI_Isend",  "MPI_Send",   "MPI_Issend",   "MPI_Ssend",
                                                   "MPI_Ibsend", "MPI_Irsend", "MPI_Send_init"};
static const char *const receive_names[RECEIVE_MODES] = {
    "MPI_Irecv", "MPI_Irecv of any source", "MPI_Recv_init",
    "MPI_Recv",  "MPI_Probe and MPI_Recv",  "MPI_Mprobe and MPI_Imrecv"};

struct exchange {
    int from, to, tag;
    int word, words, spare; /* instances for which the receiver has room in addition */
    long bytes;
    uint64_t seed;
    enum layout_kind kinds[2];
    enum send_mode send;
    enum receive_mode receive;
    long number;
    /* The ends that are at this rank. */
    struct end ends[2];
    struct memory memories[2];
    MPI_Request requests[2];
    MPI_Status status;
    int error;
};

/* Message sizes around which something changes: libfabric's inject limit, UCX's and Open MPI's segments, the
 * usual eager limits, and the limits that `causeway run` sets for Intel MPI (256 kB) and, with many ranks,
 * for the others. */
static const int sizes[] = {1,     8,     48,    128,    1000,   4096,   8192,   8256,   16384,
                            24576, 30000, 65536, 100000, 131072, 263168, 524288, 1049600};

/* The same for large messages: the limits for Open MPI, 16 MB, and beyond. */
static const int large_sizes[] = {2 << 20, 4195328, 16 << 20, 16778240, 33554432};

/* Large messages use only the first kinds of words, because these are quick to check. */
#define LARGE_WORDS 11

long exchange_cases(enum part part)
{
    switch (part) {
    case PART_PRODUCT:
        return (long)LAYOUT_KINDS * LAYOUT_KINDS * words_elements();
    case PART_LARGE:
        return (long)(sizeof large_sizes / sizeof *large_sizes) * LARGE_WORDS;
    default:
        return LONG_MAX;
    }
}

/* Returns a number of words with about `bytes` bytes: often a number that has divisors, sometimes one more or
 * less. */
static int words_in(int bytes, int word, struct random *random)
{
    static const int multiples[] = {1, 1, 2, 12, 60, 840};
    int words = bytes / words_bytes(word) + random_below(random, 3) - 1;
    int multiple = multiples[random_below(random, 6)];
    if (words >= multiple)
        words -= words % multiple;
    return words < 1 ? 1 : words;
}

static int any_size(struct random *random)
{
    int count = sizeof sizes / sizeof *sizes;
    /* A third of the messages have up to 4 kB, and few have more than 256 kB. */
    int which = random_below(random, 3) == 0
                    ? random_below(random, 6)
                    : random_below(random, random_below(random, 12) ? count - 3 : count);
    return sizes[which];
}

static void choose(struct exchange *made, enum part part, uint64_t seed, long number, int ranks)
{
    struct random random = {random_mix(seed + 1000003u * (uint64_t)part) ^ random_mix((uint64_t)number)};
    random_next(&random);
    *made = (struct exchange){
        .number = number, .seed = random_next(&random), .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    int bytes = any_size(&random);
    switch (part) {
    case PART_PRODUCT:
        made->kinds[0] = (enum layout_kind)(number % LAYOUT_KINDS);
        made->kinds[1] = (enum layout_kind)(number / LAYOUT_KINDS % LAYOUT_KINDS);
        made->word = (int)(number / LAYOUT_KINDS / LAYOUT_KINDS);
        break;
    case PART_LARGE: {
        int count = sizeof large_sizes / sizeof *large_sizes;
        bytes = large_sizes[number % count];
        made->word =
            (int)(number / count) % (LARGE_WORDS < words_elements() ? LARGE_WORDS : words_elements());
        made->kinds[0] =
            random_below(&random, 2) ? LAYOUT_PLAIN : (enum layout_kind)random_below(&random, LAYOUT_KINDS);
        made->kinds[1] = (enum layout_kind)random_below(&random, LAYOUT_KINDS);
        break;
    }
    default:
        made->kinds[0] = random_below(&random, 3) ? LAYOUT_KINDS : LAYOUT_PLAIN;
        made->kinds[1] =
            random_below(&random, 3) || made->kinds[0] == LAYOUT_PLAIN ? LAYOUT_KINDS : LAYOUT_PLAIN;
        made->word = random_below(&random, words_count());
    }
    made->words = words_in(bytes, made->word, &random);
    made->bytes = (long)made->words * words_bytes(made->word);
    made->spare = random_below(&random, 4) ? 0 : 1 + random_below(&random, 5);
    made->from = random_below(&random, ranks);
    made->to = random_below(&random, ranks);
    made->send = (enum send_mode)random_below(&random, SEND_MODES);
    made->receive = (enum receive_mode)random_below(&random, RECEIVE_MODES);
    int is_posted = made->receive <= PERSISTENT_RECEIVE;
    /* If no receive is posted beforehand, the sender must not block in its call: it may have to receive a
     * message on which another rank blocks. And a ready send needs a posted receive. */
    if (!is_posted && (made->send == SEND || made->send == SYNCHRONOUS || made->send == READY_STARTED))
        made->send = SEND_STARTED;
    if (made->send == BUFFERED && made->bytes > BUFFERED_BYTES)
        made->send = PERSISTENT_SEND;
    if (is_left_out(send_names[made->send]))
        made->send = SEND_STARTED;
}

static void make_end(struct exchange *of, int which)
{
    struct random random = {of->seed + 17 * (uint64_t)which + 1};
    end_make(&of->ends[which], of->word, of->words, of->kinds[which], &random);
    int spare = which == 1 ? of->spare : 0;
    of->memories[which] = memory_make(&of->ends[which].layout, of->ends[which].instances + spare);
    if (which == 0)
        memory_fill(&of->memories[0], &of->ends[0].layout, of->ends[0].instances, of->seed, 0);
}

static void say(const struct exchange *of, char *text, size_t size)
{
    int is_here = of->ends[1].instances > 0, sends = of->ends[0].instances > 0;
    snprintf(text, size, "data: case %ld, rank %d to %d, %ld bytes, %s%s by %s, %s%s by %s", of->number,
             of->from, of->to, of->bytes, sends ? "sent as " : "sent", sends ? of->ends[0].layout.name : "",
             send_names[of->send], is_here ? "received as " : "received",
             is_here ? of->ends[1].layout.name : "", receive_names[of->receive]);
}

static void post(struct exchange *of)
{
    void *buffer = of->memories[1].buffer;
    MPI_Datatype type = of->ends[1].layout.type;
    int count = of->ends[1].instances + of->spare,
        source = of->receive == FROM_ANY ? MPI_ANY_SOURCE : of->from;
    if (of->receive == PERSISTENT_RECEIVE) {
        of->error = MPI_Recv_init(buffer, count, type, source, of->tag, MPI_COMM_WORLD, &of->requests[1]);
        of->error = of->error ? of->error : MPI_Start(&of->requests[1]);
    } else {
        of->error = MPI_Irecv(buffer, count, type, source, of->tag, MPI_COMM_WORLD, &of->requests[1]);
    }
}

static void send(struct exchange *of)
{
    void *buffer = of->memories[0].buffer;
    MPI_Datatype type = of->ends[0].layout.type;
    int count = of->ends[0].instances, to = of->to, tag = of->tag;
    MPI_Request *request = &of->requests[0];
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (of->send) {
    case SEND_STARTED:
        of->error = MPI_Isend(buffer, count, type, to, tag, comm, request);
        break;
    case SEND:
        of->error = MPI_Send(buffer, count, type, to, tag, comm);
        break;
    case SYNCHRONOUS_STARTED:
        of->error = MPI_Issend(buffer, count, type, to, tag, comm, request);
        break;
    case SYNCHRONOUS:
        of->error = MPI_Ssend(buffer, count, type, to, tag, comm);
        break;
    case BUFFERED:
        of->error = MPI_Ibsend(buffer, count, type, to, tag, comm, request);
        break;
    case READY_STARTED:
        of->error = MPI_Irsend(buffer, count, type, to, tag, comm, request);
        break;
    default:
        of->error = MPI_Send_init(buffer, count, type, to, tag, comm, request);
        of->error = of->error ? of->error : MPI_Start(request);
    }
}

/* What a probe reports must be what arrives. */
static void receive(struct exchange *of)
{
    void *buffer = of->memories[1].buffer;
    MPI_Datatype type = of->ends[1].layout.type;
    MPI_Message message;
    int count = of->ends[1].instances + of->spare;
    switch (of->receive) {
    case LATE:
        of->error = MPI_Recv(buffer, count, type, of->from, of->tag, MPI_COMM_WORLD, &of->status);
        break;
    case PROBED:
        of->error = MPI_Probe(MPI_ANY_SOURCE, of->tag, MPI_COMM_WORLD, &of->status);
        of->error = of->error ? of->error : MPI_Get_count(&of->status, type, &count);
        if (!of->error && count != MPI_UNDEFINED)
            of->error =
                MPI_Recv(buffer, count, type, of->status.MPI_SOURCE, of->tag, MPI_COMM_WORLD, &of->status);
        break;
    default:
        of->error = MPI_Mprobe(of->from, of->tag, MPI_COMM_WORLD, &message, &of->status);
        of->error = of->error ? of->error : MPI_Imrecv(buffer, count, type, &message, &of->requests[1]);
    }
}

static void finish(struct exchange *of, int which)
{
    if (of->requests[which] != MPI_REQUEST_NULL) {
        int error = MPI_Wait(&of->requests[which], which == 1 ? &of->status : MPI_STATUS_IGNORE);
        of->error = of->error ? of->error : error;
    }
    int is_persistent = which == 1 ? of->receive == PERSISTENT_RECEIVE : of->send == PERSISTENT_SEND;
    if (is_persistent && of->requests[which] != MPI_REQUEST_NULL)
        MPI_Request_free(&of->requests[which]);
}

/* Returns 1 if anything is not as it was sent. */
static int is_wrong(const struct exchange *of)
{
    char what[512];
    say(of, what, sizeof what);
    if (of->error) {
        char text[ERROR_TEXT];
        int length;
        MPI_Error_string(of->error, text, &length);
        fprintf(stderr, "%s: %s\n", what, text);
        return 1;
    }
    const struct end *end = &of->ends[1];
    int count = -1, elements = -1, numbers = end->instances * end->layout.count;
    MPI_Get_count(&of->status, end->layout.type, &count);
    if (count != end->instances || of->status.MPI_SOURCE != of->from || of->status.MPI_TAG != of->tag) {
        fprintf(stderr, "%s: the status says count %d, source %d, tag %d instead of %d, %d, %d\n", what,
                count, of->status.MPI_SOURCE, of->status.MPI_TAG, end->instances, of->from, of->tag);
        return 1;
    }
    /* Only checked for words of one number: how a pair or a complex number counts is another question. */
    int is_one = of->word < words_elements() && end->layout.count == end->layout.words &&
                 !is_left_out("MPI_Get_elements");
    if (is_one &&
        (MPI_Get_elements(&of->status, end->layout.type, &elements) != MPI_SUCCESS || elements != numbers)) {
        fprintf(stderr, "%s: the status says %d elements instead of %d\n", what, elements, numbers);
        return 1;
    }
    const struct memory_view view = {&end->layout, end->instances, of->seed, 0, 0};
    return memory_compare(&of->memories[1], &view, 1, what) != 0;
}

static long check(struct exchange *cases, long count, int rank)
{
    long wrong = 0;
    for (long i = 0; i < count; i++) {
        struct exchange *one = &cases[i];
        if (one->to == rank)
            wrong += is_wrong(one);
        else if (one->from == rank && one->error)
            wrong += is_wrong(one);
        for (int which = 0; which < 2; which++)
            if (one->ends[which].instances) {
                end_free(&one->ends[which]);
                memory_free(&one->memories[which]);
            }
    }
    return wrong;
}

long exchange_run(enum part part, uint64_t seed, long first, long most, long *wrong)
{
    static struct exchange cases[TOGETHER];
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long count = 0, bytes = 0;
    while (count < TOGETHER && count < most && (count == 0 || bytes < BYTES_TOGETHER)) {
        struct exchange *one = &cases[count];
        choose(one, part, seed, first + count, ranks);
        one->tag = (int)count++;
        bytes += one->bytes;
        if (one->from == rank)
            make_end(one, 0);
        if (one->to == rank)
            make_end(one, 1);
    }
    for (long i = 0; i < count; i++)
        if (cases[i].to == rank && cases[i].receive <= PERSISTENT_RECEIVE)
            post(&cases[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int waits = 0; waits < 2; waits++)
        for (long i = 0; i < count; i++)
            if (cases[i].from == rank && (cases[i].send == SEND || cases[i].send == SYNCHRONOUS) == waits)
                send(&cases[i]);
    for (long i = 0; i < count; i++)
        if (cases[i].to == rank && cases[i].receive > PERSISTENT_RECEIVE)
            receive(&cases[i]);
    for (long i = 0; i < count; i++) {
        if (cases[i].to == rank)
            finish(&cases[i], 1);
        if (cases[i].from == rank)
            finish(&cases[i], 0);
    }
    *wrong += check(cases, count, rank);
    return count;
}

static void *buffer;

void exchange_begin(void)
{
    buffer = malloc(BUFFER_BYTES);
    if (!buffer)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Buffer_attach(buffer, BUFFER_BYTES);
}

void exchange_end(void)
{
    int size;
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
}
