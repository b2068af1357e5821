#include "world/engine/numbers.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64 };

/* Ids and contexts count up, so neighbours differ in few bits: multiplication spreads them. */
static size_t home(const struct numbers *table, uint64_t number)
{
    return (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (table->room - 1);
}

static size_t place(const struct numbers *table, uint64_t number)
{
    size_t at = home(table, number);
    while (table->slots[at].named && table->slots[at].number != number)
        at = (at + 1) & (table->room - 1);
    return at;
}

void *numbers_find(const struct numbers *table, uint64_t number)
{
    return table->used ? table->slots[place(table, number)].named : NULL;
}

static int grow(struct numbers *table)
{
    struct numbers larger = {.room = table->room ? 2 * table->room : FIRST_ROOM, .used = table->used};
    larger.slots = calloc(larger.room, sizeof *larger.slots);
    if (!larger.slots)
        return -1;
    for (size_t i = 0; i < table->room; i++)
        if (table->slots[i].named)
            larger.slots[place(&larger, table->slots[i].number)] = table->slots[i];
    free(table->slots);
    *table = larger;
    return 0;
}

int numbers_add(struct numbers *table, uint64_t number, void *named)
{
    if (2 * (table->used + 1) > table->room && grow(table))
        return -1;
    table->slots[place(table, number)] = (struct number_slot){number, named};
    table->used++;
    return 0;
}

/* Later entries move up into the gap if it lies between their home and their place, so that no search ends
 * early. */
void numbers_remove(struct numbers *table, uint64_t number)
{
    if (!numbers_find(table, number))
        return;
    size_t gap = place(table, number), mask = table->room - 1;
    for (size_t at = (gap + 1) & mask; table->slots[at].named; at = (at + 1) & mask) {
        size_t from = home(table, table->slots[at].number);
        if (((at - from) & mask) >= ((at - gap) & mask)) {
            table->slots[gap] = table->slots[at];
            gap = at;
        }
    }
    table->slots[gap].named = NULL;
    table->used--;
}

void numbers_free(struct numbers *table)
{
    free(table->slots);
    *table = (struct numbers){0};
}
