/* A hash table from 64-bit numbers to objects: messages and sends by peer and id, channels by context. */
#ifndef CAUSEWAY_WORLD_NUMBERS_H
#define CAUSEWAY_WORLD_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

struct numbers {
    struct number_slot {
        uint64_t number;
        /* NULL if the slot is free. */
        void *named;
    } *slots;
    /* The number of slots is a power of two, and at least twice the number that are used. */
    size_t room, used;
};

/* Returns NULL if nothing has that number. */
void *numbers_find(const struct numbers *table, uint64_t number);
/* The number must be new. Returns -1 if memory is exhausted. */
int numbers_add(struct numbers *table, uint64_t number, void *named);
void numbers_remove(struct numbers *table, uint64_t number);
void numbers_free(struct numbers *table);

#endif
