/* What goes up from a rank to its boss: pieces, which are a head and records. A rank adds records to its open
 * piece in the order in which things happen; bosses pass results on as they came. Every record begins at a
 * multiple of 8 bytes.
 *
 *     piece   = struct workers_piece_head, records
 *     RESULTS = block; results; with lists: bytes of each item's list (int64_t), lists
 *     COMPLETE= unit, number of sums; for each sum: level, index, sum
 *     FAILED  = unit, struct workers_failure
 *     ASK     = nothing: one more chunk is wanted
 *     BYE     = number of ranks below that did not answer: nothing more comes */
#ifndef CAUSEWAY_WORKERS_RECORDS_H
#define CAUSEWAY_WORKERS_RECORDS_H

#include <stddef.h>
#include <stdint.h>

enum workers_record_kind { RECORD_RESULTS = 1, RECORD_COMPLETE, RECORD_FAILED, RECORD_ASK, RECORD_BYE };

struct workers_piece_head {
    /* Blocks a second of the rank and of those below it; 0 while it is not known. */
    double rate;
};

struct workers_record {
    int64_t kind;
    /* Behind this head, without padding. */
    int64_t bytes;
};

struct workers_failure {
    int64_t item, code, rank, times;
};

struct workers_piece {
    char *data;
    size_t bytes, room;
    /* Something in it should not wait until the piece is full. */
    int is_urgent;
};

/* Room for one more record of so many bytes, which the caller fills; zeroed at its end. */
void *workers_piece_add(struct workers_piece *piece, enum workers_record_kind kind, size_t bytes);

int workers_piece_is_empty(const struct workers_piece *piece);

/* The next record of a piece of `bytes`, from `*at` on, which begins with 0; NULL behind the last. */
const struct workers_record *workers_piece_next(const char *data, size_t bytes, size_t *at);

#endif
