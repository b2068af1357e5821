#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The byte between and around what a datatype names. MPIs do not write it by themselves. */
#define GUARD 0xA7
#define MARGIN 64

static void bounds(const struct layout *layout, int instances, ptrdiff_t *lowest, ptrdiff_t *highest)
{
    *lowest = *highest = 0;
    for (int i = 0; i < layout->count; i++) {
        ptrdiff_t first = layout->pieces[i].at, last = first + (instances - 1) * layout->extent;
        ptrdiff_t low = first < last ? first : last,
                  high = (first < last ? last : first) + layout->pieces[i].carried;
        *lowest = low < *lowest ? low : *lowest;
        *highest = high > *highest ? high : *highest;
    }
}

struct memory memory_make(const struct layout *layout, int instances)
{
    ptrdiff_t lowest, highest;
    bounds(layout, instances < 1 ? 1 : instances, &lowest, &highest);
    /* The buffer that is passed to MPI is at least as well aligned as one from malloc(). */
    size_t before = ((size_t)-lowest + MARGIN + 63) / 64 * 64;
    struct memory memory = {.size = before + (size_t)highest + MARGIN};
    if (posix_memalign((void **)&memory.bytes, 64, memory.size) != 0) {
        fprintf(stderr, "data: no memory for %zu bytes\n", memory.size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(memory.bytes, GUARD, memory.size);
    memory.buffer = memory.bytes + before;
    return memory;
}

void memory_free(struct memory *memory)
{
    free(memory->bytes);
    memory->bytes = NULL;
}

/* Writes one number of a stream, of up to 16 bytes: the same number for either byte order. */
static void number(uint64_t seed, uint64_t index, unsigned char *into, int bytes)
{
    const uint64_t halves[2] = {random_mix(seed + 2 * index), random_mix(seed + 2 * index + 1)};
    for (int i = 0; i < bytes; i++) {
        int place = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? bytes - 1 - i : i;
        into[place] = (unsigned char)(halves[i / 8] >> 8 * (i % 8));
    }
}

static void put(unsigned char *buffer, const struct layout *layout, int instances, uint64_t seed,
                uint64_t index)
{
    for (int i = 0; i < instances; i++, buffer += layout->extent)
        for (int j = 0; j < layout->count; j++)
            number(seed, index++, buffer + layout->pieces[j].at, layout->pieces[j].bytes);
}

void memory_fill(struct memory *memory, const struct layout *layout, int instances, uint64_t seed,
                 uint64_t skip)
{
    put(memory->buffer, layout, instances, seed, skip);
}

/* Padding inside a number may hold anything. */
static void forgive(unsigned char *wanted, const unsigned char *found, const struct layout *layout,
                    int instances)
{
    for (int j = 0; j < layout->count; j++)
        for (int i = 0; layout->pieces[j].carried > layout->pieces[j].bytes && i < instances; i++) {
            ptrdiff_t at = i * layout->extent + layout->pieces[j].at + layout->pieces[j].bytes;
            memcpy(wanted + at, found + at, (size_t)(layout->pieces[j].carried - layout->pieces[j].bytes));
        }
}

static long count_wrong(const struct memory *memory, const unsigned char *wanted, const char *what)
{
    if (memcmp(memory->bytes, wanted, memory->size) == 0)
        return 0;
    long wrong = 0;
    size_t first = 0;
    for (size_t i = 0; i < memory->size; i++)
        if (memory->bytes[i] != wanted[i] && wrong++ == 0)
            first = i;
    fprintf(stderr, "%s: %ld of %zu bytes are wrong; the first, at %td, is %02x and should be %02x\n", what,
            wrong, memory->size, memory->bytes + first - memory->buffer, memory->bytes[first], wanted[first]);
    return wrong;
}

long memory_compare(const struct memory *memory, const struct memory_view *views, int count, const char *what)
{
    unsigned char *wanted = malloc(memory->size);
    if (!wanted)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(wanted, GUARD, memory->size);
    unsigned char *buffer = wanted + (memory->buffer - memory->bytes);
    for (int i = 0; i < count; i++) {
        put(buffer + views[i].at, views[i].layout, views[i].instances, views[i].seed, views[i].skip);
        forgive(buffer + views[i].at, memory->buffer + views[i].at, views[i].layout, views[i].instances);
    }
    long wrong = count_wrong(memory, wanted, what);
    free(wanted);
    return wrong;
}
