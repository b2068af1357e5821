/* engine_model CASES [FIRST_SEED]: random programs over the engine in virtual time, against MPI's rules.
 *
 * A case is some processes at some sites. Each runs a random program: sends, synchronous ones among them,
 * receives with wildcards, cancels, probes. What happens next is drawn at random: a step of a program, a
 * write of some bytes, an arrival of some, a question to the site's MPI. Between sites bytes go through the
 * engine; within a site a simple MPI of twenty lines has the messages. The judge knows neither: it sees which
 * receive got which message. order      of two messages of one sender that a receive matches, it gets the
 * earlier, and of two receives that match a message the one posted first gets it progress   when nothing can
 * happen any more, no message is left that a receive matches, and each receive that has a message has all of
 * it sync       such a send is done only once its message has a receive memory     what is held for a peer,
 * unasked for, stays within its window end        everybody's BYE comes, and nothing is left It is built with
 * small sizes (CAUSEWAY_SMALL_SIZES). */
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/engine/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSES = 5, COMMS = 2, MOST_MESSAGES = 80, MOST_RECEIVES = 300, TAGS = 3, LINK = 3000 };

struct mail {
    int from, to, comm, tag, is_sync, is_far, is_copied, taken_by;
    uint32_t id, bytes;
    unsigned char *data;
    struct operation send;
};
struct want {
    struct operation receive; /* first: the engine's pointer is ours */
    int at, comm, source, tag, is_native, mail, is_cancelled, is_judged;
    unsigned char *buffer;
};
struct link {
    unsigned char bytes[LINK];
    size_t have;
};

static struct mail mails[MOST_MESSAGES];
static struct want wants[MOST_RECEIVES];
static int mail_count, want_count, process_count, site_of[MOST_PROCESSES], rank_of[COMMS][MOST_PROCESSES];
static int32_t numbers[COMMS][MOST_PROCESSES];
static struct engine *engines[MOST_PROCESSES];
static struct channel channels[MOST_PROCESSES][COMMS];
static int is_open[MOST_PROCESSES][COMMS];
static struct link links[MOST_PROCESSES][MOST_PROCESSES];
/* The simple MPI of the sites: messages that are on their way, that have come, and receives, each in order.
 */
static int coming[MOST_PROCESSES][MOST_MESSAGES], coming_count[MOST_PROCESSES];
static int came[MOST_PROCESSES][MOST_MESSAGES], came_count[MOST_PROCESSES];
static int inner[MOST_PROCESSES][MOST_RECEIVES], inner_count[MOST_PROCESSES];
static uint64_t seed, state;
/* How long messages of a site are on their way. */
static unsigned laziness;
static long pairs, wildcards, cancels, probes, orphans;

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

#define CHECK(what, ...)                                     \
    do {                                                     \
        if (!(what)) {                                       \
            printf("case %llu: ", (unsigned long long)seed); \
            printf(__VA_ARGS__);                             \
            printf(" (%s, line %d)\n", #what, __LINE__);     \
            exit(1);                                         \
        }                                                    \
    } while (0)

static int is_far(int a, int b) { return site_of[a] != site_of[b]; }

static int wants_it(const struct want *want, const struct mail *mail)
{
    return want->at == mail->to && want->comm == mail->comm &&
           (want->source == ANY || want->source == rank_of[mail->comm][mail->from]) &&
           (want->tag == ANY || want->tag == mail->tag);
}

static void hand_over(struct want *want, int index)
{
    struct mail *mail = &mails[index];
    want->mail = index;
    mail->taken_by = (int)(want - wants);
    if (mail->bytes)
        memcpy(want->buffer, mail->data, mail->bytes);
}

static void native_arrives(int at, int index)
{
    for (int i = 0; i < want_count; i++)
        if (wants[i].is_native && wants[i].mail < 0 && !wants[i].is_cancelled &&
            wants_it(&wants[i], &mails[index])) {
            hand_over(&wants[i], index);
            return;
        }
    came[at][came_count[at]++] = index;
}

/* The next message of this site, from any sender, comes. */
static int native_comes(int at)
{
    if (coming_count[at] == 0)
        return 0;
    int index = coming[at][0];
    memmove(coming[at], coming[at] + 1, (size_t)--coming_count[at] * sizeof(int));
    native_arrives(at, index);
    return 1;
}

static int native_find(int at, int comm, int source, int tag)
{
    struct want want = {.at = at, .comm = comm, .source = source, .tag = tag};
    for (int i = 0; i < came_count[at]; i++)
        if (wants_it(&want, &mails[came[at][i]]))
            return i;
    return -1;
}

static int native_take(int at, int place)
{
    int index = came[at][place];
    memmove(&came[at][place], &came[at][place + 1], (size_t)(--came_count[at] - place) * sizeof(int));
    return index;
}

static void owner(const struct channel *channel, int *at, int *comm)
{
    int place = (int)(channel - &channels[0][0]);
    *at = place / COMMS, *comm = place % COMMS;
}

static int mpi_probe(struct channel *channel, int32_t source, int32_t tag, int32_t *found_source,
                     int32_t *found_tag)
{
    int at, comm;
    owner(channel, &at, &comm);
    /* Messages come between two questions too. */
    while (draw(2) == 0 && native_comes(at))
        ;
    int place = native_find(at, comm, source, tag);
    if (place < 0)
        return 0;
    const struct mail *mail = &mails[came[at][place]];
    *found_source = rank_of[comm][mail->from], *found_tag = mail->tag;
    return 1;
}

static void mpi_take(struct channel *channel, int32_t source, int32_t tag, struct operation *receive)
{
    int at, comm;
    owner(channel, &at, &comm);
    int place = native_find(at, comm, source, tag);
    CHECK(place >= 0, "a message that was probed for is not there");
    struct want *want = (struct want *)receive;
    hand_over(want, native_take(at, place));
    inner[at][inner_count[at]++] = (int)(want - wants);
}

static const struct native mpi = {mpi_probe, mpi_take};

static void open_comm(int at, int comm)
{
    struct channel *channel = &channels[at][comm];
    orphans += engines[at]->orphans != NULL;
    *channel = (struct channel){
        .context = 1000 + (uint64_t)comm, .numbers = numbers[comm], .size = (uint32_t)process_count};
    CHECK(!engine_channel_open(engines[at], channel), "no memory");
    is_open[at][comm] = 1;
}

static void do_send(int from)
{
    int comm = (int)draw(COMMS), to = (int)draw((unsigned)process_count);
    if (!is_open[from][comm] || to == from || mail_count == MOST_MESSAGES)
        return;
    struct mail *mail = &mails[mail_count];
    unsigned kind = draw(10);
    uint32_t bytes = kind == 0 ? 0 : kind < 6 ? 4 + draw(60) : kind < 9 ? 4 + draw(400) : 4 + draw(5000);
    *mail = (struct mail){
        .from = from, .to = to, .comm = comm, .tag = (int)draw(TAGS), .bytes = bytes, .taken_by = -1};
    mail->is_far = is_far(from, to), mail->is_sync = draw(8) == 0;
    mail->data = malloc(bytes ? bytes : 1);
    for (uint32_t i = 0; i < bytes; i++)
        mail->data[i] = (unsigned char)(mail_count * 7 + (int)i);
    if (bytes)
        memcpy(mail->data, &mail_count, sizeof mail_count);
    mail_count++;
    if (!mail->is_far) {
        coming[to][coming_count[to]++] = mail_count - 1;
        return;
    }
    mail->send = (struct operation){.channel = &channels[from][comm],
                                    .source = rank_of[comm][to],
                                    .tag = mail->tag,
                                    .buffer = mail->data,
                                    .room = bytes,
                                    .is_sync = (uint8_t)mail->is_sync};
    engine_send(engines[from], &mail->send, (uint32_t)rank_of[comm][from]);
    mail->id = engines[from]->peers[to].last_id;
}

static struct want *do_receive(int at, int comm, int source, int tag)
{
    if (want_count == MOST_RECEIVES)
        return NULL;
    struct want *want = &wants[want_count++];
    *want = (struct want){.at = at, .comm = comm, .source = source, .tag = tag, .mail = -1};
    want->buffer = malloc(6000);
    struct channel *channel = &channels[at][comm];
    int from = source == ANY ? -1 : numbers[comm][source], from_here = from >= 0 && !is_far(at, from);
    wildcards += source == ANY;
    if (from_here && !engine_must_queue(channel, source, tag)) {
        want->is_native = 1;
        int place = native_find(at, comm, source, tag);
        if (place >= 0)
            hand_over(want, native_take(at, place));
        return want;
    }
    want->receive = (struct operation){.channel = channel,
                                       .source = source,
                                       .tag = tag,
                                       .buffer = want->buffer,
                                       .room = 6000,
                                       .may_be_native = source == ANY || from_here};
    engine_post(engines[at], &want->receive);
    return want;
}

static void receive_some(int at)
{
    int comm = (int)draw(COMMS), source = draw(3) ? (int)draw((unsigned)process_count) : ANY;
    if (is_open[at][comm] && (source == ANY || numbers[comm][source] != at))
        do_receive(at, comm, source, draw(3) ? (int)draw(TAGS) : ANY);
}

static void cancel(struct want *want)
{
    if (want->is_cancelled || want->mail >= 0)
        return;
    if (want->is_native)
        want->is_cancelled = 1;
    else if (want->receive.state == OPERATION_WAITS)
        want->is_cancelled = engine_cancel_receive(engines[want->at], &want->receive);
    cancels += want->is_cancelled;
}

/* What a probe reports, a receive of that source and tag gets at once. */
static void probe(int at)
{
    int comm = (int)draw(COMMS), source = draw(2) ? (int)draw((unsigned)process_count) : ANY;
    int32_t tag = draw(2) ? (int)draw(TAGS) : ANY, found_source, found_tag;
    if (!is_open[at][comm] || want_count == MOST_RECEIVES || (source != ANY && numbers[comm][source] == at))
        return;
    struct channel *channel = &channels[at][comm];
    engine_match_native(engines[at], &mpi);
    struct operation found;
    if (engine_probe(channel, source, tag, &found)) {
        struct want *want = do_receive(at, comm, found.source, found.tag);
        CHECK(want->receive.state != OPERATION_WAITS && want->receive.bytes == found.bytes,
              "a probe's message went");
        probes++;
    } else if (mpi_probe(channel, source, tag, &found_source, &found_tag)) {
        if (engine_is_owed(channel, found_source, found_tag))
            return;
        struct want *want = do_receive(at, comm, found_source, found_tag);
        CHECK(want->mail >= 0, "a probe's message of this site went");
        probes++;
    }
}

static void step(int at)
{
    unsigned what = draw(16);
    if (what < 6)
        do_send(at);
    else if (what < 12)
        receive_some(at);
    else if (what == 12 && want_count)
        for (int i = 0; i < 4; i++) {
            struct want *want = &wants[draw((unsigned)want_count)];
            if (want->at == at)
                cancel(want);
        }
    else if (what == 13)
        probe(at);
    else if (mail_count) {
        struct mail *mail = &mails[draw((unsigned)mail_count)];
        if (mail->from == at && mail->is_far && mail->send.state != OPERATION_DONE)
            engine_copy(engines[at], &mail->send);
    }
}

/* Moves some bytes from an engine to the network; true where there were any. */
static int write_some(int from, int to)
{
    struct link *link = &links[from][to];
    struct iovec pieces[8];
    int count = engine_to_send(engines[from], (uint32_t)to, pieces, 2 + (int)draw(7));
    CHECK(!count || engine_has_to_send(engines[from], (uint32_t)to), "there is more to send than it says");
    size_t most = LINK - link->have, taken = 0;
    if (draw(2) && most)
        most = 1 + draw((unsigned)most);
    for (int i = 0; i < count && taken < most; i++) {
        size_t n = pieces[i].iov_len < most - taken ? pieces[i].iov_len : most - taken;
        memcpy(link->bytes + link->have, pieces[i].iov_base, n);
        link->have += n, taken += n;
    }
    engine_sent(engines[from], (uint32_t)to, taken);
    return taken > 0;
}

static int read_some(int from, int to)
{
    struct link *link = &links[from][to];
    if (!link->have)
        return 0;
    size_t most = draw(2) ? link->have : 1 + draw((unsigned)link->have), room, n = most;
    void *into = draw(2) ? engine_read_target(engines[to], (uint32_t)from, &room) : NULL;
    if (into) {
        n = n < room ? n : room;
        memcpy(into, link->bytes, n);
        engine_read(engines[to], (uint32_t)from, n);
    } else {
        CHECK(!engine_received(engines[to], (uint32_t)from, link->bytes, n), "%s",
              engines[to]->peers[from].why_lost);
    }
    memmove(link->bytes, link->bytes + n, link->have - n);
    link->have -= n;
    return 1;
}

static int native_moves(int at)
{
    int did = coming_count[at] > 0;
    if (draw(laziness) == 0)
        native_comes(at);
    did |= engine_match_native(engines[at], &mpi) > 0;
    if (inner_count[at] && draw(2)) {
        engine_native_done(engines[at], &wants[inner[at][--inner_count[at]]].receive);
        did = 1;
    }
    return did || inner_count[at];
}

static void check_held(int at)
{
    uint64_t held[MOST_PROCESSES] = {0};
    for (int comm = 0; comm < COMMS; comm++)
        for (const struct message *m = is_open[at][comm] ? channels[at][comm].arrived : NULL; m; m = m->next)
            held[m->peer] += m->came;
    for (const struct message *m = engines[at]->orphans; m; m = m->next)
        held[m->peer] += m->came;
    for (int from = 0; from < process_count; from++)
        CHECK(held[from] <= engines[at]->peers[from].window, "%llu bytes are held",
              (unsigned long long)held[from]);
}

static void check_sync(const struct mail *mail)
{
    if (!mail->is_far || !mail->is_sync || mail->send.state != OPERATION_DONE)
        return;
    const struct channel *channel = &channels[mail->to][mail->comm];
    CHECK(is_open[mail->to][mail->comm], "a synchronous send is done before its communicator is there");
    for (const struct message *m = channel->arrived; m; m = m->next)
        CHECK(m->peer != (uint32_t)mail->from || m->id != mail->id,
              "a synchronous send is done, and not received");
}

/* One thing that may happen next. */
static int happen(void)
{
    int from = (int)draw((unsigned)process_count), to = (int)draw((unsigned)process_count);
    if (from == to || !is_far(from, to))
        return native_moves(from);
    return draw(2) ? write_some(from, to) : read_some(from, to);
}

static void settle(void)
{
    for (int did = 1; did;) {
        did = 0;
        for (int from = 0; from < process_count; from++) {
            did |= native_moves(from);
            for (int to = 0; to < process_count; to++)
                if (is_far(from, to))
                    did |= write_some(from, to) | read_some(from, to);
        }
    }
}

/* Finds out which message a receive of the engine got: its first bytes say. One without bytes is the first of
 * its source and tag that nobody has. */
static void learn(struct want *want)
{
    if (want->is_judged || want->is_native || want->is_cancelled || want->mail >= 0 ||
        want->receive.state != OPERATION_DONE)
        return;
    int index = -1, from = numbers[want->comm][want->receive.source];
    if (want->receive.bytes)
        memcpy(&index, want->buffer, sizeof index);
    else
        for (int i = 0; i < mail_count && index < 0; i++)
            if (mails[i].bytes == 0 && mails[i].taken_by < 0 && mails[i].from == from &&
                mails[i].to == want->at && mails[i].comm == want->comm && mails[i].tag == want->receive.tag)
                index = i;
    CHECK(index >= 0 && index < mail_count, "a receive got what nobody sent");
    struct mail *mail = &mails[index];
    CHECK(mail->taken_by < 0 && mail->from == from && mail->tag == want->receive.tag &&
              mail->bytes == want->receive.bytes,
          "a receive got another message than it says");
    CHECK(!mail->bytes || !memcmp(mail->data, want->buffer, mail->bytes), "a message's data is wrong");
    want->mail = index, want->is_judged = 1;
    mail->taken_by = (int)(want - wants);
}

static void judge_order(void)
{
    for (int i = 0; i < mail_count; i++)
        for (int j = i + 1; j < mail_count; j++) {
            if (mails[i].from != mails[j].from || mails[i].to != mails[j].to ||
                mails[i].comm != mails[j].comm || mails[j].taken_by < 0)
                continue;
            pairs++;
            const struct want *later = &wants[mails[j].taken_by];
            CHECK(mails[i].taken_by >= 0 || !wants_it(later, &mails[i]), "message %d overtook %d", j, i);
            CHECK(mails[i].taken_by < 0 || mails[j].taken_by > mails[i].taken_by ||
                      !wants_it(later, &mails[i]),
                  "message %d overtook %d: receives %d, %d", j, i, mails[j].taken_by, mails[i].taken_by);
        }
}

static void judge(void)
{
    for (int i = 0; i < want_count; i++)
        learn(&wants[i]);
    for (int i = 0; i < want_count; i++) {
        const struct want *want = &wants[i];
        CHECK(!want->mail || want->mail < 0 || wants_it(want, &mails[want->mail]),
              "receive %d got what it does not match", i);
        CHECK(want->is_native || want->receive.state != OPERATION_MATCHED,
              "receive %d has a part of its message", i);
        for (int k = 0; k < mail_count && want->mail < 0 && !want->is_cancelled; k++)
            CHECK(mails[k].taken_by >= 0 || !wants_it(want, &mails[k]), "receive %d does not get message %d",
                  i, k);
    }
    judge_order();
    for (int i = 0; i < mail_count; i++)
        CHECK(!mails[i].is_far || mails[i].taken_by < 0 || mails[i].send.state == OPERATION_DONE,
              "send %d is not done", i);
}

static void begin(void)
{
    mail_count = want_count = 0;
    process_count = 2 + (int)draw(MOST_PROCESSES - 1);
    int sites = 2 + (int)draw(2);
    laziness = 1 + draw(20);
    memset(coming_count, 0, sizeof coming_count), memset(came_count, 0, sizeof came_count);
    memset(inner_count, 0, sizeof inner_count), memset(is_open, 0, sizeof is_open);
    for (int i = 0; i < process_count; i++) {
        site_of[i] = i < 2 ? i : (int)draw((unsigned)sites);
        engines[i] = engine_new((uint32_t)process_count);
        for (int k = 0; k < process_count; k++) {
            links[i][k].have = 0;
            engine_peer_up(engines[i], (uint32_t)k);
        }
        numbers[0][i] = i, numbers[1][i] = process_count - 1 - i;
        rank_of[0][i] = i, rank_of[1][i] = process_count - 1 - i;
    }
    for (int i = 0; i < process_count; i++)
        open_comm(i, 0);
}

/* All receives are taken back, and each message that is left is received. */
static void receive_the_rest(void)
{
    for (int i = 0; i < want_count; i++)
        cancel(&wants[i]);
    for (int at = 0; at < process_count; at++)
        for (int comm = 0; comm < COMMS; comm++) {
            int left = 0;
            for (int i = 0; i < mail_count; i++)
                left += mails[i].taken_by < 0 && mails[i].to == at && mails[i].comm == comm;
            while (left--)
                do_receive(at, comm, ANY, ANY);
        }
    settle();
    judge();
    for (int i = 0; i < mail_count; i++)
        CHECK(mails[i].taken_by >= 0, "message %d is lost", i);
}

static void end(void)
{
    for (int i = 0; i < process_count; i++)
        engine_say_bye(engines[i]);
    settle();
    for (int i = 0; i < process_count; i++) {
        CHECK(!engine_sends_wait(engines[i]) && engines[i]->copied == 0, "something waits at the end");
        CHECK(engines[i]->messages.used == 0 && engines[i]->sends.used == 0, "something is left at the end");
        for (int k = 0; k < process_count; k++) {
            const struct peer *ours = &engines[i]->peers[k], *theirs = &engines[k]->peers[i];
            CHECK(ours->credit == theirs->may_come && ours->credit + theirs->owed == theirs->window,
                  "credit is lost");
            CHECK(ours->heads_left == theirs->heads_may_come &&
                      ours->heads_left + theirs->heads_owed <= MOST_HEADS,
                  "heads are lost");
        }
    }
    for (int i = 0; i < process_count; i++) {
        for (int k = 0; k < process_count; k++)
            CHECK(!is_far(i, k) ||
                      (engine_bye_came(engines[i], (uint32_t)k) && engine_bye_sent(engines[i], (uint32_t)k)),
                  "no BYE from %d to %d", k, i);
        for (int comm = 0; comm < COMMS; comm++)
            engine_channel_close(engines[i], &channels[i][comm]);
        engine_free(engines[i]);
    }
    for (int i = 0; i < mail_count; i++)
        free(mails[i].data);
    for (int i = 0; i < want_count; i++)
        free(wants[i].buffer);
}

static void run(void)
{
    begin();
    unsigned steps = 20 + draw(150), busy = 1 + draw(6);
    for (unsigned i = 0; i < steps; i++) {
        step((int)draw((unsigned)process_count));
        int late = (int)draw((unsigned)process_count);
        if (draw(10) == 0 && !is_open[late][1])
            open_comm(late, 1);
        for (unsigned k = draw(2 * busy); k > 0; k--)
            happen();
        check_held((int)draw((unsigned)process_count));
        if (mail_count)
            check_sync(&mails[draw((unsigned)mail_count)]);
    }
    for (int i = 0; i < process_count; i++)
        if (!is_open[i][1])
            open_comm(i, 1);
    settle();
    judge();
    receive_the_rest();
    end();
}

int main(int argc, char **argv)
{
    uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000,
             first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (seed = first; seed < first + cases; seed++) {
        state = seed * UINT64_C(0x9e3779b97f4a7c15);
        run();
    }
    printf(
        "%llu cases from seed %llu: %ld pairs of messages in order, %ld wildcards, %ld cancels, %ld probes, %ld early "
        "communicators\n",
        (unsigned long long)cases, (unsigned long long)first, pairs, wildcards, cancels, probes, orphans);
    return 0;
}
