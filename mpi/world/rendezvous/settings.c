#include "world/rendezvous/settings.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hexadecimal(char digit)
{
    const char *digits = "0123456789abcdef";
    const char *found = digit ? strchr(digits, digit | 0x20) : NULL;
    return found ? (int)(found - digits) : -1;
}

static int read_token(const char *text, unsigned char token[MESSAGE_TOKEN_BYTES])
{
    if (strlen(text) != 2 * MESSAGE_TOKEN_BYTES)
        return -1;
    for (int i = 0; i < MESSAGE_TOKEN_BYTES; i++) {
        int high = hexadecimal(text[2 * i]), low = hexadecimal(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return -1;
        token[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

int settings_address(const char *text, struct sockaddr_storage *address)
{
    char ip[INET6_ADDRSTRLEN + 2];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof ip)
        return -1;
    size_t n = (size_t)(colon - text);
    memcpy(ip, text, n);
    ip[n] = 0;
    char *rest = NULL;
    unsigned long port = strtoul(colon + 1, &rest, 10);
    if (port == 0 || port > 65535 || *rest)
        return -1;
    memset(address, 0, sizeof *address);
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, ip, &v4.sin_addr) == 1) {
        memcpy(address, &v4, sizeof v4);
        return 0;
    }
    if (n < 2 || ip[0] != '[' || ip[n - 1] != ']')
        return -1;
    ip[n - 1] = 0;
    if (inet_pton(AF_INET6, ip + 1, &v6.sin6_addr) != 1)
        return -1;
    memcpy(address, &v6, sizeof v6);
    return 0;
}

int settings_parse(const char *world, const char *token, struct settings *settings, char *why, size_t room)
{
    if (!world)
        return 0;
    memset(settings, 0, sizeof *settings);
    /* A site's name has no comma. */
    const char *site = strchr(world, ','), *address = site ? strchr(site + 1, ',') : NULL;
    if (!site || site - world != 1 || world[0] != '0' + MESSAGE_VERSION) {
        snprintf(
            why, room,
            "CAUSEWAY_WORLD=%.80s is of another version than this library (%d): install the same causeway at every site",
            world, MESSAGE_VERSION);
        return -1;
    }
    size_t n = address ? (size_t)(address - site - 1) : 0;
    if (n == 0 || n >= sizeof settings->site || settings_address(address + 1, &settings->rendezvous) != 0) {
        snprintf(why, room,
                 "CAUSEWAY_WORLD=%.80s is not 2,SITE,IP:PORT: start this program with 'causeway run --at'",
                 world);
        return -1;
    }
    memcpy(settings->site, site + 1, n);
    if (!token || read_token(token, settings->token) != 0) {
        snprintf(
            why, room,
            "CAUSEWAY_WORLD is set and CAUSEWAY_TOKEN is no token: the site's launcher must forward both");
        return -1;
    }
    return 1;
}

int settings_read(struct settings *settings, char *why, size_t room)
{
    return settings_parse(getenv("CAUSEWAY_WORLD"), getenv("CAUSEWAY_TOKEN"), settings, why, room);
}
