#include "records.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

static size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

void *workers_piece_add(struct workers_piece *piece, enum workers_record_kind kind, size_t bytes)
{
    if (!piece->bytes)
        piece->bytes = sizeof(struct workers_piece_head);
    size_t end = piece->bytes + sizeof(struct workers_record) + padded(bytes);
    if (end > piece->room) {
        char *data = workers_new(end + end / 2);
        if (piece->data)
            memcpy(data, piece->data, piece->bytes);
        free(piece->data);
        piece->data = data;
        piece->room = end + end / 2;
    }
    struct workers_record record = {kind, (int64_t)bytes};
    memcpy(piece->data + piece->bytes, &record, sizeof record);
    char *payload = piece->data + piece->bytes + sizeof record;
    memset(payload + bytes, 0, padded(bytes) - bytes);
    piece->bytes = end;
    piece->is_urgent |= kind != RECORD_RESULTS;
    return payload;
}

int workers_piece_is_empty(const struct workers_piece *piece)
{
    return piece->bytes <= sizeof(struct workers_piece_head);
}

const struct workers_record *workers_piece_next(const char *data, size_t bytes, size_t *at)
{
    if (!*at)
        *at = sizeof(struct workers_piece_head);
    if (*at + sizeof(struct workers_record) > bytes)
        return NULL;
    const struct workers_record *record = (const struct workers_record *)(data + *at);
    *at += sizeof *record + padded(record->bytes);
    return record;
}
