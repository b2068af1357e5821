#include "world/frames/frames.h"

#include <string.h>

static void put(unsigned char **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char **at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)*(*at)++ << 8 * i;
    return value;
}

size_t frame_head_bytes(uint8_t kind)
{
    switch (kind) {
    case FRAME_HEAD:
        return 1 + 1 + 4 + 8 + 4 + 4 + 8 + 4;
    case FRAME_DATA:
        return 1 + 1 + 4 + 4;
    case FRAME_CREDIT:
        return 1 + 8 + 4;
    case FRAME_GRANT:
    case FRAME_MATCHED:
        return 1 + 4;
    case FRAME_BYE:
        return 1;
    default:
        return 0;
    }
}

size_t frame_encode(const struct frame *frame, unsigned char *to)
{
    unsigned char *at = to;
    put(&at, frame->kind, 1);
    switch (frame->kind) {
    case FRAME_HEAD:
        put(&at, frame->flags, 1);
        put(&at, frame->id, 4);
        put(&at, frame->context, 8);
        put(&at, frame->source, 4);
        put(&at, (uint32_t)frame->tag, 4);
        put(&at, frame->bytes, 8);
        put(&at, frame->data, 4);
        break;
    case FRAME_DATA:
        put(&at, frame->counted, 1);
        put(&at, frame->id, 4);
        put(&at, frame->data, 4);
        break;
    case FRAME_CREDIT:
        put(&at, frame->bytes, 8);
        put(&at, frame->heads, 4);
        break;
    case FRAME_GRANT:
    case FRAME_MATCHED:
        put(&at, frame->id, 4);
        break;
    }
    return (size_t)(at - to);
}

static const char *decode_head(struct frame *frame, const unsigned char *at)
{
    frame->flags = (uint8_t)get(&at, 1);
    frame->id = (uint32_t)get(&at, 4);
    frame->context = get(&at, 8);
    frame->source = (uint32_t)get(&at, 4);
    frame->tag = (int32_t)(uint32_t)get(&at, 4);
    frame->bytes = get(&at, 8);
    frame->data = (uint32_t)get(&at, 4);
    frame->counted = 1;
    if (frame->flags & ~FRAME_SYNC)
        return "a message with flags that no version has";
    if (frame->tag < 0)
        return "a message with a negative tag";
    if (frame->bytes > FRAME_MOST_BYTES)
        return "a message that is longer than any may be";
    if (frame->data && (frame->data != frame->bytes || frame->data > FRAME_MOST_INLINE))
        return "a message's head with too much data";
    return NULL;
}

const char *frame_decode(struct frame *frame, const unsigned char *from)
{
    const unsigned char *at = from;
    memset(frame, 0, sizeof *frame);
    frame->kind = (uint8_t)get(&at, 1);
    switch (frame->kind) {
    case FRAME_HEAD:
        return decode_head(frame, at);
    case FRAME_DATA:
        frame->counted = (uint8_t)get(&at, 1);
        frame->id = (uint32_t)get(&at, 4);
        frame->data = (uint32_t)get(&at, 4);
        if (frame->counted > 1)
            return "data that is neither counted nor uncounted";
        return frame->data == 0 || frame->data > FRAME_MOST_DATA ? "data of a wrong length" : NULL;
    case FRAME_CREDIT:
        frame->bytes = get(&at, 8);
        frame->heads = (uint32_t)get(&at, 4);
        return frame->bytes > FRAME_MOST_BYTES ? "a credit that is larger than any may be" : NULL;
    case FRAME_GRANT:
    case FRAME_MATCHED:
        frame->id = (uint32_t)get(&at, 4);
        return NULL;
    case FRAME_BYE:
        return NULL;
    default:
        return "a frame of no known kind";
    }
}
