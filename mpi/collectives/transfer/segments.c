#define _GNU_SOURCE
#include "collectives/transfer/segments.h"

struct segments segments_of(int64_t count, int64_t element_bytes, int64_t segment_bytes)
{
    int64_t bytes = count * element_bytes;
    int64_t pieces = segment_bytes > 0 ? (bytes + segment_bytes - 1) / segment_bytes : 1;
    if (pieces > count)
        pieces = count;
    if (pieces < 1)
        pieces = 1;
    if (pieces > 4096)
        pieces = 4096;
    return (struct segments){.count = count, .pieces = (int)pieces};
}
