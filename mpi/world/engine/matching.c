#include "world/engine/matching.h"

#include "world/engine/state.h"

#include <stdlib.h>
#include <string.h>

static int matches(const struct operation *receive, const struct message *message)
{
    return operation_matches(receive, (int32_t)message->source, message->tag);
}

void message_completes(struct engine *engine, struct message *message)
{
    if (!message->receive)
        return;
    operation_finish(engine, message->receive);
    message_free(message);
}

/* Gives a message to a receive, with the data that has arrived. */
static void take(struct engine *engine, struct message *message, struct operation *receive)
{
    struct peer *peer = &engine->peers[message->peer];
    receive->state = OPERATION_MATCHED;
    receive->source = (int32_t)message->source;
    receive->tag = message->tag;
    receive->bytes = receive->sent = message->bytes;
    receive->is_truncated = message->bytes > receive->room;
    if (receive->is_truncated)
        receive->bytes = receive->room;
    if (!receive->buffer && receive->bytes) {
        receive->buffer = malloc(receive->bytes);
        receive->has_own_memory = 1;
        receive->has_no_memory = receive->buffer == NULL;
        if (receive->has_no_memory)
            receive->room = 0;
    }
    message->receive = receive;
    peer->heads_owed++;
    if (message->is_sync)
        answer(engine, message->peer, FRAME_MATCHED, message->id);
    if (message->came) {
        uint64_t fits = message->came < receive->room ? message->came : receive->room;
        if (fits)
            memcpy(receive->buffer, message->held, fits);
        credit_free(engine, peer, message->came);
        free(message->held);
        message->held = NULL;
    }
    if (message->came == message->bytes)
        message_completes(engine, message);
    else if (!message->is_whole)
        answer(engine, message->peer, FRAME_GRANT, message->id);
}

static void unlist(struct channel *channel, struct operation **at)
{
    struct operation *receive = *at;
    *at = receive->next;
    if (!*at)
        channel->posted_end = at;
    channel->may_be_native -= receive->may_be_native;
}

static struct operation **first_posted(struct channel *channel, int32_t source, int32_t tag)
{
    struct operation **at = &channel->posted;
    while (*at && !operation_matches(*at, source, tag))
        at = &(*at)->next;
    return at;
}

static const char *match(struct engine *engine, struct channel *channel, struct message *message)
{
    if (message->source >= channel->size || channel->numbers[message->source] != (int32_t)message->peer)
        return "a message from a rank that it is not";
    struct operation **at = first_posted(channel, (int32_t)message->source, message->tag), *receive = *at;
    if (receive) {
        unlist(channel, at);
        take(engine, message, receive);
        return NULL;
    }
    message->next = NULL;
    *channel->arrived_end = message;
    channel->arrived_end = &message->next;
    return NULL;
}

const char *message_arrives(struct engine *engine, struct message *message)
{
    struct channel *channel = numbers_find(&engine->channels, message->context);
    if (channel)
        return match(engine, channel, message);
    message->next = NULL;
    *engine->orphans_end = message;
    engine->orphans_end = &message->next;
    return NULL;
}

/* Declares the sender of a bad message lost. The message is no longer in any list; if it is still arriving,
 * it is freed with the engine, which finds it by what it waits for. */
static void refuse(struct engine *engine, struct message *message, const char *wrong)
{
    engine_peer_lost(engine, message->peer, wrong);
    if (message->came == message->bytes)
        message_free(message);
}

int engine_channel_open(struct engine *engine, struct channel *channel)
{
    channel->posted = NULL, channel->posted_end = &channel->posted;
    channel->arrived = NULL, channel->arrived_end = &channel->arrived;
    if (numbers_add(&engine->channels, channel->context, channel))
        return -1;
    for (struct message **at = &engine->orphans; *at;) {
        struct message *message = *at;
        if (message->context != channel->context) {
            at = &message->next;
            continue;
        }
        *at = message->next;
        const char *wrong = match(engine, channel, message);
        if (wrong)
            refuse(engine, message, wrong);
    }
    engine->orphans_end = &engine->orphans;
    while (*engine->orphans_end)
        engine->orphans_end = &(*engine->orphans_end)->next;
    return 0;
}

/* Gives a message a receive without room, so that data which has not arrived yet is discarded as it
 * arrives. */
static void drop(struct engine *engine, struct message *message)
{
    struct operation *nobody = calloc(1, sizeof *nobody);
    if (!nobody)
        return;
    nobody->is_nobodys = 1;
    take(engine, message, nobody);
}

void engine_channel_close(struct engine *engine, struct channel *channel)
{
    numbers_remove(&engine->channels, channel->context);
    while (channel->arrived) {
        struct message *message = channel->arrived;
        channel->arrived = message->next;
        drop(engine, message);
    }
    for (struct channel **at = &engine->listed; *at; at = &(*at)->next_listed)
        if (*at == channel) {
            *at = channel->next_listed;
            break;
        }
}

void engine_post(struct engine *engine, struct operation *receive)
{
    struct channel *channel = receive->channel;
    for (struct message **at = &channel->arrived; *at; at = &(*at)->next) {
        struct message *message = *at;
        if (!matches(receive, message))
            continue;
        *at = message->next;
        if (!*at)
            channel->arrived_end = at;
        take(engine, message, receive);
        return;
    }
    receive->state = OPERATION_WAITS;
    receive->next = NULL;
    *channel->posted_end = receive;
    channel->posted_end = &receive->next;
    channel->may_be_native += receive->may_be_native;
    if (receive->may_be_native && !channel->is_listed) {
        channel->is_listed = 1;
        channel->next_listed = engine->listed;
        engine->listed = channel;
    }
}

int engine_cancel_receive(struct engine *engine, struct operation *receive)
{
    struct channel *channel = receive->channel;
    for (struct operation **at = &channel->posted; *at; at = &(*at)->next)
        if (*at == receive) {
            unlist(channel, at);
            receive->is_cancelled = 1;
            operation_finish(engine, receive);
            return 1;
        }
    return 0;
}

int engine_must_queue(const struct channel *channel, int32_t source, int32_t tag)
{
    if (!channel->may_be_native)
        return 0;
    for (const struct operation *p = channel->posted; p; p = p->next)
        if (p->may_be_native && (p->source == ANY || p->source == source) &&
            (p->tag == ANY || tag == ANY || p->tag == tag))
            return 1;
    return 0;
}

int engine_probe(const struct channel *channel, int32_t source, int32_t tag, struct operation *found)
{
    struct operation wanted = {.source = source, .tag = tag};
    for (const struct message *message = channel->arrived; message; message = message->next)
        if (matches(&wanted, message)) {
            found->source = (int32_t)message->source;
            found->tag = message->tag;
            found->bytes = message->bytes;
            return 1;
        }
    return 0;
}

struct message *engine_reserve(struct channel *channel, int32_t source, int32_t tag, struct operation *found)
{
    struct operation wanted = {.source = source, .tag = tag};
    for (struct message **at = &channel->arrived; *at; at = &(*at)->next) {
        struct message *message = *at;
        if (!matches(&wanted, message))
            continue;
        *at = message->next;
        if (!*at)
            channel->arrived_end = at;
        found->source = (int32_t)message->source;
        found->tag = message->tag;
        found->bytes = message->bytes;
        return message;
    }
    return NULL;
}

void engine_receive_reserved(struct engine *engine, struct message *message, struct operation *receive)
{
    take(engine, message, receive);
}

int engine_is_owed(const struct channel *channel, int32_t source, int32_t tag)
{
    for (const struct operation *p = channel->posted; p; p = p->next)
        if (operation_matches(p, source, tag))
            return 1;
    return 0;
}
