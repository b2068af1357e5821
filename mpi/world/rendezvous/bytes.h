/* Reads little-endian numbers and texts from the front of the remaining bytes, or writes them at the end,
 * within bounds. A reader or writer that has failed once does nothing more. */
#ifndef CAUSEWAY_WORLD_JOIN_BYTES_H
#define CAUSEWAY_WORLD_JOIN_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
    const unsigned char *at;
    size_t left;
    int failed;
};

/* Takes the next n bytes; NULL if there are fewer. */
static inline const unsigned char *reader_take(struct reader *reader, size_t n)
{
    if (reader->failed || reader->left < n) {
        reader->failed = 1;
        return NULL;
    }
    const unsigned char *taken = reader->at;
    reader->at += n;
    reader->left -= n;
    return taken;
}

/* Takes a number of n bytes; 0 on failure. */
static inline uint64_t reader_number(struct reader *reader, size_t n)
{
    const unsigned char *bytes = reader_take(reader, n);
    uint64_t number = 0;
    for (size_t i = bytes ? n : 0; i > 0; i--)
        number = number << 8 | bytes[i - 1];
    return number;
}

struct writer {
    unsigned char *at;
    size_t left;
    int failed;
};

static inline void writer_put(struct writer *writer, const void *bytes, size_t n)
{
    if (writer->failed || writer->left < n) {
        writer->failed = 1;
        return;
    }
    memcpy(writer->at, bytes, n);
    writer->at += n;
    writer->left -= n;
}

static inline void writer_number(struct writer *writer, uint64_t number, size_t n)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
    writer_put(writer, bytes, n);
}

#endif
