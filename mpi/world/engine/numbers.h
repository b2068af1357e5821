/* A table from numbers of 64 bits to what they name: messages and sends by peer and id, channels by
 * context. */
#ifndef CAUSEWAY_WORLD_NUMBERS_H
#define CAUSEWAY_WORLD_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

struct numbers {
    struct number_slot {
        uint64_t number;
        /* NULL: the slot is free. */
        void *named;
    } *slots;
    /* Slots are a power of two, at least twice as many as are used. */
    size_t room, used;
};

/* NULL where nothing has that number. */
void *numbers_find(const struct numbers *table, uint64_t number);
/* The number must be new. Returns -1 where there is no memory. */
int numbers_add(struct numbers *table, uint64_t number, void *named);
void numbers_remove(struct numbers *table, uint64_t number);
void numbers_free(struct numbers *table);

#endif
