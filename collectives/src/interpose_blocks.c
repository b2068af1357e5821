/* Calls with a block for each rank: gather, scatter, allgather, alltoall. See interpose.c. */
#define _GNU_SOURCE
#include "algorithms.h"
#include "combine.h"
#include "enter.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Where equal blocks begin. */
static int blocks(const struct levels *on, int count, const struct shape *shape, int **counts, MPI_Aint **places)
{
    *counts = malloc(on->size * sizeof **counts);
    *places = malloc(on->size * sizeof **places);
    if (!*counts || !*places)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < on->size; i++) {
        (*counts)[i] = count;
        (*places)[i] = (MPI_Aint)count * i * shape->extent;
    }
    return MPI_SUCCESS;
}

static int gather(struct levels *on, const void *from, int count, const struct shape *shape, void *into, int into_count,
                  const struct shape *into_shape, int root, const struct choice *choice)
{
    int *counts = NULL, status = MPI_SUCCESS;
    MPI_Aint *places = NULL;
    int at_root = on->rank == root;
    if (choice->algorithm == DIRECT) {
        if (at_root)
            status = blocks(on, into_count, into_shape, &counts, &places);
        TRY(status, gather_direct(on, from, count, at_root && from == MPI_IN_PLACE ? handle.byte : shape->type, into, counts, places,
                                  at_root ? into_shape->type : handle.byte, root));
        free(counts);
        free(places);
        return status;
    }
    struct bytes bytes = {0};
    char *room = NULL;
    const void *own = from;
    if (from == MPI_IN_PLACE)
        own = (char *)into + (MPI_Aint)root * into_count * into_shape->extent;
    status = bytes_pack(own, from == MPI_IN_PLACE ? into_count : count, from == MPI_IN_PLACE ? into_shape : shape, on->across, &bytes);
    if (at_root && status == MPI_SUCCESS && !(room = malloc(on->size * bytes.length + 1)))
        status = MPI_ERR_NO_MEM;
    TRY(status, gather_speakers(on, bytes.at, bytes.length, room, root));
    for (int i = 0; at_root && i < on->size; i++) {
        int rank = on->members[i];
        if (rank != root || from != MPI_IN_PLACE)
            TRY(status, unpack(room + i * bytes.length, bytes.length,
                               (char *)into + (MPI_Aint)rank * into_count * into_shape->extent, into_count, into_shape, on->across));
    }
    bytes_free(&bytes);
    free(room);
    return status;
}

EXPORT int MPI_Gather(const void *from, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                      int root, MPI_Comm comm)
{
    struct shape shape = {0}, into_shape = {0};
    struct choice choice;
    struct levels *on;
    /* The root may have said nothing of what it sends, the others nothing of what they receive. */
    if (from == MPI_IN_PLACE)
        on = enter(comm, OF_GATHER, into_count, into_type, &into_shape, &choice);
    else
        on = enter(comm, OF_GATHER, count, type, &shape, &choice);
    if (on && (!is_root(on, root) || (on->rank == root && (into_count < 0 || !shape_of(into_type, &into_shape)))))
        on = give_up(on);
    if (!on)
        return PASS(Gather, from, count, type, into, into_count, into_type, root, comm);
    return levels_leave(on, gather(on, from, count, &shape, into, into_count, &into_shape, root, &choice));
}
BOTH(Gather);

/* Places in bytes. */
static MPI_Aint *byte_places(const struct levels *on, const int places[], MPI_Aint extent)
{
    MPI_Aint *bytes = malloc(on->size * sizeof *bytes);
    for (int i = 0; bytes && i < on->size; i++)
        bytes[i] = (MPI_Aint)places[i] * extent;
    return bytes;
}

EXPORT int MPI_Gatherv(const void *from, int count, MPI_Datatype type, void *into, const int counts[], const int places[],
                       MPI_Datatype into_type, int root, MPI_Comm comm)
{
    struct shape shape = {0};
    struct levels *on = enter_any(comm, OF_GATHER);
    if (on && (!is_root(on, root) || (on->rank == root && (!counts || !places || !shape_of(into_type, &shape)))))
        on = give_up(on);
    if (!on)
        return PASS(Gatherv, from, count, type, into, counts, places, into_type, root, comm);
    int status = MPI_SUCCESS;
    MPI_Aint *bytes = NULL;
    if (on->rank == root && !(bytes = byte_places(on, places, shape.extent)))
        status = MPI_ERR_NO_MEM;
    TRY(status, gather_direct(on, from, count, type, into, counts, bytes, into_type, root));
    free(bytes);
    return levels_leave(on, status);
}
BOTH(Gatherv);

static int scatter(struct levels *on, const void *from, int from_count, const struct shape *from_shape, void *into, int count,
                   const struct shape *shape, int root, const struct choice *choice)
{
    int *counts = NULL, status = MPI_SUCCESS;
    MPI_Aint *places = NULL;
    int at_root = on->rank == root;
    if (choice->algorithm == DIRECT) {
        if (at_root)
            status = blocks(on, from_count, from_shape, &counts, &places);
        TRY(status, scatter_direct(on, from, counts, places, at_root ? from_shape->type : handle.byte, into, count,
                                   into == MPI_IN_PLACE ? handle.byte : shape->type, root));
        free(counts);
        free(places);
        return status;
    }
    struct bytes bytes = {0};
    char *room = NULL, *own = NULL;
    int64_t length = into == MPI_IN_PLACE ? (int64_t)from_count * from_shape->size : (int64_t)count * shape->size;
    if (at_root) {
        room = malloc(on->size * length + 1);
        status = room ? MPI_SUCCESS : MPI_ERR_NO_MEM;
        for (int i = 0; i < on->size; i++)
            TRY(status, pack((const char *)from + (MPI_Aint)on->members[i] * from_count * from_shape->extent, from_count, from_shape,
                             room + i * length, length, on->across));
    }
    if (into == MPI_IN_PLACE) {
        own = malloc(length + 1);
        TRY(status, own ? scatter_speakers(on, room, length, own, root) : MPI_ERR_NO_MEM);
    } else {
        TRY(status, bytes_room(into, count, shape, &bytes));
        TRY(status, scatter_speakers(on, room, length, bytes.at, root));
        TRY(status, bytes_unpack(&bytes, into, count, shape, on->across));
        bytes_free(&bytes);
    }
    free(own);
    free(room);
    return status;
}

EXPORT int MPI_Scatter(const void *from, int from_count, MPI_Datatype from_type, void *into, int count, MPI_Datatype type,
                       int root, MPI_Comm comm)
{
    struct shape shape = {0}, from_shape = {0};
    struct choice choice;
    struct levels *on;
    if (into == MPI_IN_PLACE)
        on = enter(comm, OF_SCATTER, from_count, from_type, &from_shape, &choice);
    else
        on = enter(comm, OF_SCATTER, count, type, &shape, &choice);
    if (on && (!is_root(on, root) || (on->rank == root && (from_count < 0 || !shape_of(from_type, &from_shape)))))
        on = give_up(on);
    if (!on)
        return PASS(Scatter, from, from_count, from_type, into, count, type, root, comm);
    return levels_leave(on, scatter(on, from, from_count, &from_shape, into, count, &shape, root, &choice));
}
BOTH(Scatter);

EXPORT int MPI_Scatterv(const void *from, const int counts[], const int places[], MPI_Datatype from_type, void *into, int count,
                        MPI_Datatype type, int root, MPI_Comm comm)
{
    struct shape shape = {0};
    struct levels *on = enter_any(comm, OF_SCATTER);
    if (on && (!is_root(on, root) || (on->rank == root && (!counts || !places || !shape_of(from_type, &shape)))))
        on = give_up(on);
    if (!on)
        return PASS(Scatterv, from, counts, places, from_type, into, count, type, root, comm);
    int status = MPI_SUCCESS;
    MPI_Aint *bytes = NULL;
    if (on->rank == root && !(bytes = byte_places(on, places, shape.extent)))
        status = MPI_ERR_NO_MEM;
    TRY(status, scatter_direct(on, from, counts, bytes, from_type, into, count, type, root));
    free(bytes);
    return levels_leave(on, status);
}
BOTH(Scatterv);

/* Every rank's `counts[rank]` elements at byte `places[rank]` of `into`, from all to all. */
static int allgather(struct levels *on, const void *from, int count, const struct shape *shape, void *into,
                     const int counts[], const MPI_Aint places[], const struct shape *into_shape, const struct choice *choice)
{
    struct bytes own = {0};
    int64_t *lengths = malloc(2 * on->size * sizeof *lengths), *at = lengths + on->size, all = 0;
    /* In lanes everything comes to its place at once, where that is so many bytes in a row. */
    int lanes = choice->algorithm == LANES, in_place = lanes && into_shape->is_plain;
    if (!lengths)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < on->size; i++) {
        int rank = on->members[i];
        lengths[i] = (int64_t)counts[rank] * into_shape->size;
        at[i] = in_place ? places[rank] : all;
        all += lengths[i];
    }
    char *memory = in_place ? NULL : malloc(all + 1), *room = in_place ? into : memory;
    int status = room || all == 0 ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (from == MPI_IN_PLACE)
        TRY(status, bytes_pack((char *)into + places[on->rank], counts[on->rank], into_shape, on->across, &own));
    else
        TRY(status, bytes_pack(from, count, shape, on->across, &own));
    if (lanes) {
        char *mine = room + at[on->first[on->site] + on->local_rank];
        if (status == MPI_SUCCESS && own.length > 0 && own.at != mine)
            memcpy(mine, own.at, own.length);
        TRY(status, allgather_lanes(on, lengths, at, room, choice->flit));
    } else {
        TRY(status, allgather_speakers(on, own.at, lengths[0], room));
    }
    for (int i = 0; i < on->size && !in_place; i++) {
        int rank = on->members[i];
        if (rank != on->rank || from != MPI_IN_PLACE)
            TRY(status, unpack(room + at[i], lengths[i], (char *)into + places[rank], counts[rank], into_shape, on->across));
    }
    bytes_free(&own);
    free(memory);
    free(lengths);
    return status;
}

EXPORT int MPI_Allgather(const void *from, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                         MPI_Comm comm)
{
    struct shape shape = {0}, into_shape;
    struct choice choice;
    struct levels *on = enter(comm, OF_ALLGATHER, into_count, into_type, &into_shape, &choice);
    if (on && from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &shape)))
        on = give_up(on);
    if (!on)
        return PASS(Allgather, from, count, type, into, into_count, into_type, comm);
    int *counts;
    MPI_Aint *places;
    int status = blocks(on, into_count, &into_shape, &counts, &places);
    TRY(status, allgather(on, from, count, &shape, into, counts, places, &into_shape, &choice));
    free(counts);
    free(places);
    return levels_leave(on, status);
}
BOTH(Allgather);

EXPORT int MPI_Allgatherv(const void *from, int count, MPI_Datatype type, void *into, const int counts[], const int places[],
                          MPI_Datatype into_type, MPI_Comm comm)
{
    struct shape shape = {0}, into_shape;
    struct choice choice;
    int64_t longest = 0;
    struct levels *on = enter_any(comm, OF_ALLGATHER);
    if (on && (!counts || !places || !shape_of(into_type, &into_shape)))
        on = give_up(on);
    for (int i = 0; on && i < on->size; i++) {
        longest = counts[i] > longest ? counts[i] : longest;
        if (counts[i] < 0)
            on = give_up(on);
    }
    if (on && (choice = choose(on, OF_ALLGATHER, longest * into_shape.size, 1)).algorithm == NATIVE)
        on = give_up(on);
    if (on && from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &shape)))
        on = give_up(on);
    if (!on)
        return PASS(Allgatherv, from, count, type, into, counts, places, into_type, comm);
    MPI_Aint *bytes = byte_places(on, places, into_shape.extent);
    /* Parts of different length have no other algorithm. */
    choice.algorithm = LANES;
    int status = bytes ? allgather(on, from, count, &shape, into, counts, bytes, &into_shape, &choice) : MPI_ERR_NO_MEM;
    free(bytes);
    return levels_leave(on, status);
}
BOTH(Allgatherv);

/* Small blocks, by way of one rank of each site. */
static int alltoall_small(struct levels *on, const void *from, int count, const struct shape *shape, void *into, int into_count,
                          const struct shape *into_shape)
{
    int64_t length = (int64_t)into_count * into_shape->size;
    char *rows = malloc(2 * on->size * length + 1), *came = rows + on->size * length;
    int status = rows ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (from == MPI_IN_PLACE) {
        from = into;
        count = into_count;
        shape = into_shape;
    }
    for (int i = 0; i < on->size; i++)
        TRY(status, pack((const char *)from + (MPI_Aint)on->members[i] * count * shape->extent, count, shape, rows + i * length,
                         length, on->across));
    TRY(status, alltoall_speakers(on, rows, length, came));
    for (int i = 0; i < on->size; i++)
        TRY(status, unpack(came + i * length, length, (char *)into + (MPI_Aint)on->members[i] * into_count * into_shape->extent,
                           into_count, into_shape, on->across));
    free(rows);
    return status;
}

/* What every rank sends to and gets from each other one, places in bytes. */
struct exchange {
    int *counts;
    MPI_Aint *places;
    MPI_Datatype *types;
};

static int exchange_make(struct exchange *all, const struct levels *on)
{
    all->counts = malloc(on->size * sizeof *all->counts);
    all->places = malloc(on->size * sizeof *all->places);
    all->types = malloc(on->size * sizeof *all->types);
    return all->counts && all->places && all->types ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void exchange_free(struct exchange *all)
{
    free(all->counts);
    free(all->places);
    free(all->types);
}

EXPORT int MPI_Alltoall(const void *from, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                        MPI_Comm comm)
{
    struct shape shape = {0}, into_shape;
    struct choice choice;
    struct levels *on = enter(comm, OF_ALLTOALL, into_count, into_type, &into_shape, &choice);
    if (on && from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &shape)))
        on = give_up(on);
    if (on && (int64_t)into_count * on->size > INT_MAX)
        on = give_up(on);
    if (!on)
        return PASS(Alltoall, from, count, type, into, into_count, into_type, comm);
    if (choice.algorithm == SPEAKERS)
        return levels_leave(on, alltoall_small(on, from, count, &shape, into, into_count, &into_shape));
    struct exchange out = {0}, in = {0};
    void *memory = NULL, *copy = NULL;
    int status = exchange_make(&out, on);
    TRY(status, exchange_make(&in, on));
    /* In place everything is sent from a copy. */
    if (from == MPI_IN_PLACE && status == MPI_SUCCESS) {
        memory = elements((int64_t)into_count * on->size, &into_shape, &copy);
        status = memory ? elements_copy(on, into, copy, into_count * on->size, &into_shape) : MPI_ERR_NO_MEM;
        from = copy, count = into_count, type = into_type, shape = into_shape;
    }
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        out.counts[i] = count, in.counts[i] = into_count;
        out.types[i] = type, in.types[i] = into_type;
        out.places[i] = (MPI_Aint)count * i * shape.extent;
        in.places[i] = (MPI_Aint)into_count * i * into_shape.extent;
    }
    TRY(status, alltoall_direct(on, from, out.counts, out.places, out.types, into, in.counts, in.places, in.types));
    exchange_free(&out);
    exchange_free(&in);
    free(memory);
    return levels_leave(on, status);
}
BOTH(Alltoall);

EXPORT int MPI_Alltoallv(const void *from, const int counts[], const int places[], MPI_Datatype type, void *into,
                         const int into_counts[], const int into_places[], MPI_Datatype into_type, MPI_Comm comm)
{
    struct shape shape = {0}, into_shape = {0};
    /* In place is a word of every rank or of none. */
    struct levels *on = from != MPI_IN_PLACE ? enter_any(comm, OF_ALLTOALL) : NULL;
    if (on && (!counts || !places || !into_counts || !into_places ||
               !shape_of(type, &shape) || !shape_of(into_type, &into_shape)))
        on = give_up(on);
    if (!on)
        return PASS(Alltoallv, from, counts, places, type, into, into_counts, into_places, into_type, comm);
    struct exchange out = {0}, in = {0};
    int status = exchange_make(&out, on);
    TRY(status, exchange_make(&in, on));
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        out.types[i] = type, in.types[i] = into_type;
        out.places[i] = (MPI_Aint)places[i] * shape.extent;
        in.places[i] = (MPI_Aint)into_places[i] * into_shape.extent;
    }
    TRY(status, alltoall_direct(on, from, counts, out.places, out.types, into, into_counts, in.places, in.types));
    exchange_free(&out);
    exchange_free(&in);
    return levels_leave(on, status);
}
BOTH(Alltoallv);

EXPORT int MPI_Alltoallw(const void *from, const int counts[], const int places[], const MPI_Datatype types[], void *into,
                         const int into_counts[], const int into_places[], const MPI_Datatype into_types[], MPI_Comm comm)
{
    struct levels *on = from != MPI_IN_PLACE ? enter_any(comm, OF_ALLTOALL) : NULL;
    if (on && (!counts || !places || !types || !into_counts || !into_places ||
               !into_types))
        on = give_up(on);
    if (!on)
        return PASS(Alltoallw, from, counts, places, types, into, into_counts, into_places, into_types, comm);
    MPI_Aint *out = byte_places(on, places, 1), *in = byte_places(on, into_places, 1);
    int status = out && in ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    TRY(status, alltoall_direct(on, from, counts, out, types, into, into_counts, in, into_types));
    free(out);
    free(in);
    return levels_leave(on, status);
}
BOTH(Alltoallw);
