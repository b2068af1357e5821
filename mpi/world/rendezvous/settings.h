/* What `causeway run --at` tells each process in its environment. */
#ifndef CAUSEWAY_WORLD_RENDEZVOUS_SETTINGS_H
#define CAUSEWAY_WORLD_RENDEZVOUS_SETTINGS_H

#include "world/rendezvous/message.h"

struct settings {
    char site[MESSAGE_MOST_TEXT];
    struct sockaddr_storage rendezvous;
    unsigned char token[MESSAGE_TOKEN_BYTES];
};

/* Reads CAUSEWAY_WORLD ("2,SITE,IP:PORT", "[IP]:PORT" with IPv6) and CAUSEWAY_TOKEN (32 hexadecimal digits).
 * Returns 1; 0 if the process belongs to no world, which is no error; -1 with a sentence in `why`. */
int settings_read(struct settings *settings, char *why, size_t room);
/* The same for these texts, either of which may be NULL. */
int settings_parse(const char *world, const char *token, struct settings *settings, char *why, size_t room);

/* Reads IP:PORT; returns -1 if it is not valid. */
int settings_address(const char *text, struct sockaddr_storage *address);

#endif
