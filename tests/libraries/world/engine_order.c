/* engine_order: credit goes to the messages that have waited longest for it.
 *
 * One process sends more than the other's window has room for. That one receives one message after the other,
 * each once the one before is there. Bytes take a trip from one to the other, in virtual time. If later
 * messages had the credit, each of the earlier ones would cost its receiver a round trip. It is built with
 * small sizes (CAUSEWAY_SMALL_SIZES). */
#include "world/engine/matching.h"
#include "world/engine/sending.h"
#include "world/engine/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 2000, BYTES = 50, SENDS_A_TRIP = 30, FLIGHT = 1 << 20 };

static struct engine *engines[2];
static struct channel channels[2];
static const int32_t numbers[2] = {0, 1};
static struct operation sends[MESSAGES];
static unsigned char data[MESSAGES][BYTES], got[BYTES];
/* Bytes on their way from each process. */
static unsigned char flight[2][FLIGHT];
static size_t flying[2];

static void fail(const char *what)
{
    fprintf(stderr, "engine_order: %s\n", what);
    exit(1);
}

static void fly(int from)
{
    struct iovec pieces[32];
    int count;
    while ((count = engine_to_send(engines[from], (uint32_t)(1 - from), pieces, 32)) > 0) {
        size_t taken = 0;
        for (int i = 0; i < count; i++) {
            if (flying[from] + pieces[i].iov_len > FLIGHT)
                fail("too much is on its way");
            memcpy(flight[from] + flying[from], pieces[i].iov_base, pieces[i].iov_len);
            flying[from] += pieces[i].iov_len;
            taken += pieces[i].iov_len;
        }
        engine_sent(engines[from], (uint32_t)(1 - from), taken);
    }
}

static void land(int from)
{
    if (flying[from] && engine_received(engines[1 - from], (uint32_t)from, flight[from], flying[from]))
        fail("what came was refused");
    flying[from] = 0;
}

static void send_next(int *sent)
{
    struct operation *send = &sends[*sent];
    memset(data[*sent], *sent % 251, BYTES);
    *send = (struct operation){.channel = &channels[0], .source = 1, .buffer = data[*sent], .room = BYTES};
    engine_send(engines[0], send, 0);
    engine_copy(engines[0], send);
    ++*sent;
}

/* Receives all that is there; the receive that waits for the next is posted. */
static void receive(struct operation *next, int *received)
{
    while (*received < MESSAGES && next->state == OPERATION_DONE) {
        if (next->channel) {
            for (int i = 0; i < BYTES; i++)
                if (got[i] != *received % 251)
                    fail("a message is not the next one");
            ++*received;
        }
        if (*received == MESSAGES)
            return;
        *next = (struct operation){.channel = &channels[1], .source = 0, .buffer = got, .room = BYTES};
        engine_post(engines[1], next);
    }
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        engines[i] = engine_new(2);
        engine_peer_up(engines[i], (uint32_t)(1 - i));
        channels[i] = (struct channel){.context = 7, .numbers = numbers, .size = 2};
        if (engine_channel_open(engines[i], &channels[i]))
            fail("no memory");
    }
    struct operation next = {.state = OPERATION_DONE};
    int sent = 0, received = 0, trips = 0;
    /* What the window and the sender's own pace allow, and as much again. */
    int most = 2 * (MESSAGES / SENDS_A_TRIP + 2 * MESSAGES * BYTES / FIRST_WINDOW);
    while (received < MESSAGES) {
        if (++trips > most)
            fail("earlier messages wait while later ones have the credit");
        land(0), land(1);
        for (int i = 0; i < SENDS_A_TRIP && sent < MESSAGES; i++)
            send_next(&sent);
        receive(&next, &received);
        fly(0), fly(1);
    }
    printf("%d messages of %d bytes in %d trips, %d at most\n", MESSAGES, BYTES, trips, most);
    for (int i = 0; i < 2; i++) {
        engine_channel_close(engines[i], &channels[i]);
        engine_free(engines[i]);
    }
    return 0;
}
