/* Cuts a message into segments, so that sites and the links between them work at the same time. QCG-OMPI
 * (Coti and others 2011) calls them flits, after wormhole routing. */
#ifndef CAUSEWAY_SEGMENTS_H
#define CAUSEWAY_SEGMENTS_H

#include <stdint.h>

/* A message of `count` elements, cut into `pieces`. Piece i begins at element segment_at(i). */
struct segments {
    int64_t count;
    int pieces;
};

struct segments segments_of(int64_t count, int64_t element_bytes, int64_t segment_bytes);

static inline int64_t segment_at(const struct segments *segments, int piece)
{
    return segments->count / segments->pieces * piece +
           segments->count % segments->pieces * piece / segments->pieces;
}

static inline int segment_count(const struct segments *segments, int piece)
{
    return (int)(segment_at(segments, piece + 1) - segment_at(segments, piece));
}

#endif
