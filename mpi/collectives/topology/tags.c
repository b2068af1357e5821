#define _GNU_SOURCE
#include "collectives/topology/tags.h"

#include "collectives/binding/fatal.h"

#include <stdint.h>
#include <stdlib.h>

/* The maximum number of improved persistent requests on a communicator at a time, if the MPI has tags for as
 * many. */
#define MAX_PERSISTENT 32768

static int tags_of_one(const struct hierarchy *on)
{
    return TAG_PART + (on->size < MAX_PARTS ? on->size : MAX_PARTS);
}

/* The number of operations that can have tags of their own. Blocking operations share the first set of
 * tags. */
static int tags_for(const struct hierarchy *on)
{
    static int most;
    int is_there, *value;
    if (!most)
        most = real.Comm_get_attr(handle.comm_world, MPI_TAG_UB, &value, &is_there) == MPI_SUCCESS && is_there
                   ? *value
                   : 32767;
    return (int)(((int64_t)most + 1) / tags_of_one(on)) - 1;
}

static int first_unused(const struct hierarchy *on, int number, int count)
{
    while (number < count && on->tags_used_anywhere[number / 8] & 1 << number % 8)
        number++;
    return number;
}

/* Takes the next free number. All ranks take the same numbers, but return them at different times. So at the
 * end of the range they tell each other which numbers are in use. Numbers taken since then are below
 * on->next_tag_number. */
static int take_number(struct hierarchy *on, int count)
{
    int bytes = (count + 7) / 8;
    if (!on->tags_used)
        on->tags_used = must_have(calloc(2, bytes));
    on->tags_used_anywhere = on->tags_used + bytes;
    int number = first_unused(on, on->next_tag_number, count);
    if (number == count) {
        if (real.Allreduce(on->tags_used, on->tags_used_anywhere, bytes, handle.byte, handle.bitwise_or,
                           on->across) != MPI_SUCCESS)
            return -1;
        number = first_unused(on, 0, count);
    }
    on->next_tag_number = number < count ? number + 1 : count;
    if (number == count)
        return -1;
    __atomic_fetch_or(&on->tags_used[number / 8], (unsigned char)(1 << number % 8), __ATOMIC_RELAXED);
    return number;
}

int tags_take(struct hierarchy *on, int is_persistent)
{
    /* All ranks make these calls in the same order, so their counts agree. Persistent requests have the first
     * half. */
    int all = tags_for(on), persistent = all / 2 < MAX_PERSISTENT ? all / 2 : MAX_PERSISTENT, number = -1;
    if (is_persistent && persistent > 0)
        number = take_number(on, persistent);
    else if (!is_persistent && all > persistent)
        number = persistent + (int)(on->begun++ % (unsigned)(all - persistent));
    return number < 0 ? -1 : (1 + number) * tags_of_one(on);
}

void tags_return(struct hierarchy *on, int tags)
{
    int number = tags / tags_of_one(on) - 1;
    __atomic_fetch_and(&on->tags_used[number / 8], (unsigned char)~(1 << number % 8), __ATOMIC_RELAXED);
}
