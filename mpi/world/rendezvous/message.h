/* Frames between native rank 0 of a site and the rendezvous, as bytes;
 * crates/rendezvous/src/message.rs has the layout and the other end. It uses no sockets. */
#ifndef CAUSEWAY_WORLD_RENDEZVOUS_MESSAGE_H
#define CAUSEWAY_WORLD_RENDEZVOUS_MESSAGE_H

#include "world/world.h"
#include <stddef.h>

enum {
    MESSAGE_VERSION = 2,
    MESSAGE_TOKEN_BYTES = 16,
    MESSAGE_HEAD_BYTES = 4,
    MESSAGE_MOST_BYTES = 16 << 20,
    MESSAGE_ADDRESS_BYTES = 1 + 16 + 2,
    /* The longest name or reason. */
    MESSAGE_MOST_TEXT = 1024,
};

enum message_type {
    MESSAGE_JOIN = 1,
    MESSAGE_WORLD = 2,
    MESSAGE_NO = 3,
    MESSAGE_ABORT = 4,
    MESSAGE_DONE = 5,
    MESSAGE_PROCESS = 6,
};

/* Each allocates a whole frame of *n bytes. They return NULL if memory is exhausted, there are too many
 * processes, a text is too long, or an address is neither IPv4 nor IPv6. */
unsigned char *message_join(const struct rendezvous_request *request, const char *site,
                            const unsigned char token[MESSAGE_TOKEN_BYTES], size_t *n);
unsigned char *message_process(const char *site, const unsigned char token[MESSAGE_TOKEN_BYTES], size_t *n);
unsigned char *message_abort(uint32_t code, const char *text, size_t *n);
unsigned char *message_done(size_t *n);

/* The number of bytes that follow a frame's length field: at least 1, at most MESSAGE_MOST_BYTES; 0 if it is
 * out of these bounds. */
size_t message_length(const unsigned char head[MESSAGE_HEAD_BYTES]);

/* Reads WORLD, a frame without its length field, for the process with this native rank of this site. Returns
 * 0, or -1 with nothing to free: the bytes are damaged or out of bounds, memory is exhausted, or they contain
 * no such process. */
int message_read_world(const unsigned char *bytes, size_t n, const char *site, uint32_t native_rank,
                       struct world *world);
/* Frees the memory that message_read_world has allocated. */
void message_free_world(struct world *world);

/* Read the text of NO, or code and text of ABORT, from a frame without its length field. Return 0, or -1. */
int message_read_no(const unsigned char *bytes, size_t n, char *text, size_t room);
int message_read_abort(const unsigned char *bytes, size_t n, uint32_t *code, char *text, size_t room);

#endif
