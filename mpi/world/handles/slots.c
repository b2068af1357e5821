#include "world/handles/slots.h"

/* More than the communicators of any MPI. */
enum { MOST = 1 << 16 };

static uint8_t is_taken[MOST];
static int32_t count = 1, last = SLOT_OF_WORLD;

void slots_begin(int64_t tag_ub)
{
    int64_t all = (tag_ub + 1) / SLOT_TAGS;
    count = (int32_t)(all < 1 ? 1 : all > MOST ? MOST : all);
    is_taken[SLOT_OF_WORLD] = 1;
}

int32_t slot_take(void)
{
    for (int32_t i = 0; i < count; i++) {
        last = (last + 1) % count;
        if (!is_taken[last]) {
            is_taken[last] = 1;
            return last;
        }
    }
    return NO_SLOT;
}

void slot_give_back(int32_t slot)
{
    if (slot > SLOT_OF_WORLD && slot < MOST)
        is_taken[slot] = 0;
}
