/* Messages between sites, buffers as bytes, and how a message is cut. */
#ifndef CAUSEWAY_TRANSFER_H
#define CAUSEWAY_TRANSFER_H

#include "topology/hierarchy.h"

#include <stdint.h>

/* Of a datatype. */
struct shape {
    MPI_Datatype type;
    /* Bytes of data in one element. */
    MPI_Count size;
    MPI_Aint extent, true_lb, true_extent;
    /* Elements lie in memory as they travel: no packing. */
    int is_plain;
};

/* False of what is no datatype. All other ranks may describe the same bytes by other datatypes: nothing is decided by this one's own. */
int shape_of(MPI_Datatype type, struct shape *shape);

/* Of so many; as many as there can be, where it is more. */
int64_t shape_bytes(const struct shape *shape, int64_t count);

/* Whether it is one of the MPI's, or no datatype. */
int type_is_named(MPI_Datatype type);

/* A buffer's contents as bytes. */
struct bytes {
    char *at;
    int64_t length;
    /* What `at` is, when it is not the buffer itself. */
    char *owned;
};

/* Packs, unless the type is plain. `out` gets room for what arrives; bytes_unpack puts it into the buffer. */
int bytes_pack(const void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm, struct bytes *bytes);
int bytes_room(void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes);
int bytes_unpack(const struct bytes *bytes, void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm);
void bytes_free(struct bytes *bytes);

/* Puts `length` packed bytes into `count` elements of a buffer. */
int unpack(const char *from, int64_t length, void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm);
int pack(const void *buffer, int64_t count, const struct shape *shape, char *to, int64_t length, MPI_Comm comm);

/* Memory for so many elements; what to hand to MPI is *origin, what to free is returned. NULL without memory. */
void *elements(int64_t count, const struct shape *shape, void **origin);

/* Messages under way. */
struct requests {
    struct request {
        MPI_Request handle;
        int receives;
    } *all;
    int count, room;
};

/* Between ranks of on->across; from and to one's own site too. */
int requests_send(struct requests *some, const struct hierarchy *on, const void *from, int64_t count, MPI_Datatype type,
                  int to, int tag);
int requests_receive(struct requests *some, const struct hierarchy *on, void *into, int64_t count, MPI_Datatype type,
                     int from, int tag);
/* A message to or from another site, whose two ends may describe it by different datatypes. Where the MPI would hold a large one back until the far side has
 * answered (MPICH, Intel MPI), it goes as bytes, in segments, which it does not hold back. `bytes` is kept until the requests have been waited for: then it is taken out, or freed. */
int requests_send_cut(struct requests *some, const struct hierarchy *on, const void *from, int64_t count, const struct shape *shape, int to, int tag,
                      struct bytes *bytes);
int requests_receive_cut(struct requests *some, const struct hierarchy *on, void *into, int64_t count, const struct shape *shape, int from, int tag,
                         struct bytes *bytes);
int requests_wait(struct requests *some);
/* Waits for one of them alone. */
int requests_wait_for(struct requests *some, int which);
/* Waits for all. After an error nobody may ever answer: then nothing is left that writes into memory, and no more is waited for. */
void requests_free(struct requests *some, int status);

/* Ends what can be ended of messages that nobody waits for any more (`all`: waits for all of them). */
void transfer_reap(int all);

/* How a message of `count` elements is cut: piece i of `pieces` begins at element segment_at(i). */
struct segments {
    int64_t count;
    int pieces;
};

struct segments segments_of(int64_t count, int64_t element_bytes, int64_t segment_bytes);

static inline int64_t segment_at(const struct segments *segments, int piece)
{
    return segments->count / segments->pieces * piece + segments->count % segments->pieces * piece / segments->pieces;
}

static inline int segment_count(const struct segments *segments, int piece)
{
    return (int)(segment_at(segments, piece + 1) - segment_at(segments, piece));
}

/* What crossed from this rank's site: messages and bytes sent by this process to other sites since the start. */
struct crossings {
    int64_t messages, bytes;
};

/* Tests read it (dlsym); the program does not see it. Each binary interface has its own: two libraries may be there. */
#if defined(OPEN_MPI)
#define causeway_crossings causeway_crossings_openmpi
#define causeway_crossings_to causeway_crossings_openmpi_to
#elif defined(CAUSEWAY_STANDARD_ABI)
#define causeway_crossings causeway_crossings_abi
#define causeway_crossings_to causeway_crossings_abi_to
#else
#define causeway_crossings causeway_crossings_mpich
#define causeway_crossings_to causeway_crossings_mpich_to
#endif
__attribute__((visibility("default"))) void causeway_crossings(struct crossings *crossings);
/* The same to one site, numbered as in the communicators that were used, of the first 16; none of the others. */
__attribute__((visibility("default"))) void causeway_crossings_to(int site, struct crossings *crossings);

#endif
