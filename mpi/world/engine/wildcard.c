/* Receives that a far message or one within the site may match, and the messages that the site's own MPI has
 * for them. That MPI must not see these receives, so it is asked for messages instead, in a way that keeps
 * MPI's order: if a receive matches two messages from one sender, it gets the earlier one; if two receives
 * match a message, the earlier one gets it. */
#include "world/engine/matching.h"
#include "world/engine/state.h"

/* Whether `wide` matches everything that `narrow` matches. */
static int contains(const struct operation *wide, const struct operation *narrow)
{
    return (wide->source == ANY || wide->source == narrow->source) &&
           (wide->tag == ANY || wide->tag == narrow->tag);
}

/* There is no need to ask for a receive that an earlier one contains: the earlier one would get the message.
 * Any other receive must be asked for: (any, 9) after (any, 5) has messages of its own. */
static int is_contained(const struct channel *channel, const struct operation *receive)
{
    for (const struct operation *p = channel->posted; p != receive; p = p->next)
        if (p->may_be_native && contains(p, receive))
            return 1;
    return 0;
}

static struct operation *first_matching(const struct channel *channel, int32_t source, int32_t tag)
{
    struct operation *p = channel->posted;
    while (p && !operation_matches(p, source, tag))
        p = p->next;
    return p;
}

static void unlist(struct channel *channel, struct operation *receive)
{
    struct operation **at = &channel->posted;
    while (*at != receive)
        at = &(*at)->next;
    *at = receive->next;
    if (!*at)
        channel->posted_end = at;
    channel->may_be_native -= receive->may_be_native;
}

/* A message of (source, tag) was found. It belongs to the first receive that matches it. But that receive
 * must get the earliest message of this source that it matches, which may be another message, and that may in
 * turn belong to an earlier receive. Each receive found is earlier in the list, so this ends. */
static int settle(struct channel *channel, const struct native *native, const struct operation *asked,
                  int32_t source, int32_t tag)
{
    struct operation *receive = first_matching(channel, source, tag);
    /* For the receive that was asked for, the earliest message is already known. */
    while (receive && receive != asked) {
        int32_t again;
        if (!native->probe(channel, source, receive->tag, &again, &tag))
            return 0;
        struct operation *other = first_matching(channel, source, tag);
        if (other == receive)
            break;
        receive = other;
        asked = NULL;
    }
    if (!receive)
        return 0;
    unlist(channel, receive);
    receive->state = OPERATION_MATCHED;
    native->take(channel, source, tag, receive);
    return 1;
}

static int ask(struct channel *channel, const struct native *native)
{
    int matched = 0;
    for (struct operation *p = channel->posted; p;) {
        int32_t source, tag;
        if (p->may_be_native && !is_contained(channel, p) &&
            native->probe(channel, p->source, p->tag, &source, &tag) &&
            settle(channel, native, p, source, tag)) {
            matched++;
            p = channel->posted;
        } else {
            p = p->next;
        }
    }
    return matched;
}

int engine_match_native(struct engine *engine, const struct native *native)
{
    int matched = 0;
    for (struct channel **at = &engine->listed; *at;) {
        struct channel *channel = *at;
        matched += ask(channel, native);
        if (channel->may_be_native) {
            at = &channel->next_listed;
        } else {
            *at = channel->next_listed;
            channel->is_listed = 0;
        }
    }
    return matched;
}

void engine_native_done(struct engine *engine, struct operation *receive)
{
    operation_finish(engine, receive);
}
