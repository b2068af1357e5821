/* Calls with a block for each rank: gather, scatter, allgather, alltoall. See vectors.c. */
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

#define P_Gather const void *from, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type, int root, MPI_Comm comm
#define A_Gather from, count, type, into, into_count, into_type, root, comm

static int run_gather(struct levels *on, const struct plan *plan)
{
    return gather(on, plan->from, plan->count, &plan->shape, plan->into, plan->into_count, &plan->into_shape, plan->root, &plan->choice);
}

static int plan_gather(struct plan *plan, P_Gather)
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count, plan->root = root, plan->run = run_gather;
    /* The root may have said nothing of what it sends, the others nothing of what they receive. */
    int in_place = from == MPI_IN_PLACE;
    if (!enter(plan, comm, OF_GATHER, in_place ? into_count : count, in_place ? into_type : type))
        return 0;
    int at_root = plan->on->rank == root;
    if (!is_root(plan->on, root) || (at_root && (into_count < 0 || !shape_of(into_type, &plan->into_shape))))
        return give_up(plan);
    return 1;
}
FORMS(Gather, gather);

/* Places in bytes. */
static MPI_Aint *byte_places(const struct levels *on, const int places[], MPI_Aint extent)
{
    MPI_Aint *bytes = malloc(on->size * sizeof *bytes);
    for (int i = 0; bytes && i < on->size; i++)
        bytes[i] = (MPI_Aint)places[i] * extent;
    return bytes;
}

#define P_Gatherv const void *from, int count, MPI_Datatype type, void *into, const int counts[], const int places[], MPI_Datatype into_type, \
                  int root, MPI_Comm comm
#define A_Gatherv from, count, type, into, counts, places, into_type, root, comm

static int run_gatherv(struct levels *on, const struct plan *plan)
{
    int status = MPI_SUCCESS;
    MPI_Aint *bytes = NULL;
    if (on->rank == plan->root && !(bytes = byte_places(on, plan->places, plan->shape.extent)))
        status = MPI_ERR_NO_MEM;
    TRY(status, gather_direct(on, plan->from, plan->count, plan->type, plan->into, plan->counts, bytes, plan->into_type, plan->root));
    free(bytes);
    return status;
}

static int plan_gatherv(struct plan *plan, P_Gatherv)
{
    plan->from = from, plan->count = count, plan->type = type, plan->into = into, plan->counts = counts, plan->places = places;
    plan->into_type = into_type, plan->root = root, plan->run = run_gatherv;
    if (!enter_any(plan, comm, OF_GATHER))
        return 0;
    int at_root = plan->on->rank == root;
    return (is_root(plan->on, root) && (!at_root || (counts && places && shape_of(into_type, &plan->shape)))) || give_up(plan);
}
FORMS(Gatherv, gatherv);

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

#define P_Scatter const void *from, int from_count, MPI_Datatype from_type, void *into, int count, MPI_Datatype type, int root, MPI_Comm comm
#define A_Scatter from, from_count, from_type, into, count, type, root, comm

/* What the root sends is of shape `shape`, what everybody gets of shape `into_shape`. */
static int run_scatter(struct levels *on, const struct plan *plan)
{
    return scatter(on, plan->from, plan->count, &plan->shape, plan->into, plan->into_count, &plan->into_shape, plan->root, &plan->choice);
}

static int plan_scatter(struct plan *plan, P_Scatter)
{
    plan->from = from, plan->count = from_count, plan->into = into, plan->into_count = count, plan->root = root, plan->run = run_scatter;
    int in_place = into == MPI_IN_PLACE;
    if (!enter(plan, comm, OF_SCATTER, in_place ? from_count : count, in_place ? from_type : type))
        return 0;
    plan->into_shape = plan->shape;
    int at_root = plan->on->rank == root;
    if (!is_root(plan->on, root) || (at_root && (from_count < 0 || !shape_of(from_type, &plan->shape))))
        return give_up(plan);
    return 1;
}
FORMS(Scatter, scatter);

#define P_Scatterv const void *from, const int counts[], const int places[], MPI_Datatype from_type, void *into, int count, MPI_Datatype type, \
                   int root, MPI_Comm comm
#define A_Scatterv from, counts, places, from_type, into, count, type, root, comm

static int run_scatterv(struct levels *on, const struct plan *plan)
{
    int status = MPI_SUCCESS;
    MPI_Aint *bytes = NULL;
    if (on->rank == plan->root && !(bytes = byte_places(on, plan->places, plan->shape.extent)))
        status = MPI_ERR_NO_MEM;
    TRY(status, scatter_direct(on, plan->from, plan->counts, bytes, plan->type, plan->into, plan->into_count, plan->into_type, plan->root));
    free(bytes);
    return status;
}

static int plan_scatterv(struct plan *plan, P_Scatterv)
{
    plan->from = from, plan->counts = counts, plan->places = places, plan->type = from_type, plan->into = into, plan->into_count = count;
    plan->into_type = type, plan->root = root, plan->run = run_scatterv;
    if (!enter_any(plan, comm, OF_SCATTER))
        return 0;
    int at_root = plan->on->rank == root;
    return (is_root(plan->on, root) && (!at_root || (counts && places && shape_of(from_type, &plan->shape)))) || give_up(plan);
}
FORMS(Scatterv, scatterv);

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

#define P_Allgather const void *from, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type, MPI_Comm comm
#define A_Allgather from, count, type, into, into_count, into_type, comm

static int run_allgather(struct levels *on, const struct plan *plan)
{
    int *counts;
    MPI_Aint *places;
    int status = blocks(on, plan->into_count, &plan->into_shape, &counts, &places);
    TRY(status, allgather(on, plan->from, plan->count, &plan->shape, plan->into, counts, places, &plan->into_shape, &plan->choice));
    free(counts);
    free(places);
    return status;
}

static int plan_allgather(struct plan *plan, P_Allgather)
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count, plan->run = run_allgather;
    if (!enter(plan, comm, OF_ALLGATHER, into_count, into_type))
        return 0;
    plan->into_shape = plan->shape;
    return from == MPI_IN_PLACE || (count >= 0 && shape_of(type, &plan->shape)) || give_up(plan);
}
FORMS(Allgather, allgather);

#define P_Allgatherv const void *from, int count, MPI_Datatype type, void *into, const int counts[], const int places[], \
                     MPI_Datatype into_type, MPI_Comm comm
#define A_Allgatherv from, count, type, into, counts, places, into_type, comm

static int run_allgatherv(struct levels *on, const struct plan *plan)
{
    MPI_Aint *bytes = byte_places(on, plan->places, plan->into_shape.extent);
    int status = bytes ? allgather(on, plan->from, plan->count, &plan->shape, plan->into, plan->counts, bytes, &plan->into_shape, &plan->choice)
                       : MPI_ERR_NO_MEM;
    free(bytes);
    return status;
}

static int plan_allgatherv(struct plan *plan, P_Allgatherv)
{
    int64_t longest = 0;
    plan->from = from, plan->count = count, plan->into = into, plan->counts = counts, plan->places = places, plan->run = run_allgatherv;
    if (!enter_any(plan, comm, OF_ALLGATHER))
        return 0;
    if (!counts || !places || !shape_of(into_type, &plan->into_shape))
        return give_up(plan);
    for (int i = 0; i < plan->on->size; i++) {
        longest = counts[i] > longest ? counts[i] : longest;
        if (counts[i] < 0)
            return give_up(plan);
    }
    plan->choice = choose(plan->on, OF_ALLGATHER, longest * plan->into_shape.size, 1);
    if (plan->choice.algorithm == NATIVE || (from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &plan->shape))))
        return give_up(plan);
    /* Parts of different length have no other algorithm. */
    plan->choice.algorithm = LANES;
    return 1;
}
FORMS(Allgatherv, allgatherv);

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
struct columns {
    int *counts;
    MPI_Aint *places;
    MPI_Datatype *types;
};

static int columns_make(struct columns *all, const struct levels *on)
{
    all->counts = malloc(on->size * sizeof *all->counts);
    all->places = malloc(on->size * sizeof *all->places);
    all->types = malloc(on->size * sizeof *all->types);
    return all->counts && all->places && all->types ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void columns_free(struct columns *all)
{
    free(all->counts);
    free(all->places);
    free(all->types);
}

#define P_Alltoall P_Allgather
#define A_Alltoall A_Allgather

static int run_alltoall(struct levels *on, const struct plan *plan)
{
    const void *from = plan->from;
    int count = plan->count, into_count = plan->into_count;
    struct shape shape = plan->shape, into_shape = plan->into_shape;
    if (plan->choice.algorithm == SPEAKERS)
        return alltoall_small(on, from, count, &shape, plan->into, into_count, &into_shape);
    struct columns out = {0}, in = {0};
    void *memory = NULL, *copy = NULL;
    int status = columns_make(&out, on);
    TRY(status, columns_make(&in, on));
    /* In place everything is sent from a copy. */
    if (from == MPI_IN_PLACE && status == MPI_SUCCESS) {
        memory = elements((int64_t)into_count * on->size, &into_shape, &copy);
        status = memory ? elements_copy(on, plan->into, copy, into_count * on->size, &into_shape) : MPI_ERR_NO_MEM;
        from = copy, count = into_count, shape = into_shape;
    }
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        out.counts[i] = count, in.counts[i] = into_count;
        out.types[i] = shape.type, in.types[i] = into_shape.type;
        out.places[i] = (MPI_Aint)count * i * shape.extent;
        in.places[i] = (MPI_Aint)into_count * i * into_shape.extent;
    }
    TRY(status, alltoall_direct(on, from, out.counts, out.places, out.types, plan->into, in.counts, in.places, in.types));
    columns_free(&out);
    columns_free(&in);
    free(memory);
    return status;
}

static int plan_alltoall(struct plan *plan, P_Alltoall)
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count, plan->run = run_alltoall;
    if (!enter(plan, comm, OF_ALLTOALL, into_count, into_type))
        return 0;
    plan->into_shape = plan->shape;
    if (from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &plan->shape)))
        return give_up(plan);
    return (int64_t)into_count * plan->on->size <= INT_MAX || give_up(plan);
}
FORMS(Alltoall, alltoall);

#define P_Alltoallv const void *from, const int counts[], const int places[], MPI_Datatype type, void *into, const int into_counts[], \
                    const int into_places[], MPI_Datatype into_type, MPI_Comm comm
#define A_Alltoallv from, counts, places, type, into, into_counts, into_places, into_type, comm

static void exchange(struct plan *plan, const void *from, const int counts[], const int places[], void *into, const int into_counts[],
                     const int into_places[])
{
    plan->from = from, plan->counts = counts, plan->places = places;
    plan->into = into, plan->into_counts = into_counts, plan->into_places = into_places;
}

static int run_alltoallv(struct levels *on, const struct plan *plan)
{
    struct columns out = {0}, in = {0};
    int status = columns_make(&out, on);
    TRY(status, columns_make(&in, on));
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        out.types[i] = plan->shape.type, in.types[i] = plan->into_shape.type;
        out.places[i] = (MPI_Aint)plan->places[i] * plan->shape.extent;
        in.places[i] = (MPI_Aint)plan->into_places[i] * plan->into_shape.extent;
    }
    TRY(status, alltoall_direct(on, plan->from, plan->counts, out.places, out.types, plan->into, plan->into_counts, in.places, in.types));
    columns_free(&out);
    columns_free(&in);
    return status;
}

static int plan_alltoallv(struct plan *plan, P_Alltoallv)
{
    exchange(plan, from, counts, places, into, into_counts, into_places);
    plan->run = run_alltoallv;
    /* In place is a word of every rank or of none. */
    if (from == MPI_IN_PLACE || !enter_any(plan, comm, OF_ALLTOALL))
        return 0;
    return (counts && places && into_counts && into_places && shape_of(type, &plan->shape) && shape_of(into_type, &plan->into_shape)) ||
           give_up(plan);
}
FORMS(Alltoallv, alltoallv);

#define P_Alltoallw const void *from, const int counts[], const int places[], const MPI_Datatype types[], void *into, \
                    const int into_counts[], const int into_places[], const MPI_Datatype into_types[], MPI_Comm comm
#define A_Alltoallw from, counts, places, types, into, into_counts, into_places, into_types, comm

static int run_alltoallw(struct levels *on, const struct plan *plan)
{
    MPI_Aint *out = byte_places(on, plan->places, 1), *in = byte_places(on, plan->into_places, 1);
    int status = out && in ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    TRY(status, alltoall_direct(on, plan->from, plan->counts, out, plan->types, plan->into, plan->into_counts, in, plan->into_types));
    free(out);
    free(in);
    return status;
}

static int plan_alltoallw(struct plan *plan, P_Alltoallw)
{
    exchange(plan, from, counts, places, into, into_counts, into_places);
    plan->types = types, plan->into_types = into_types, plan->run = run_alltoallw;
    if (from == MPI_IN_PLACE || !enter_any(plan, comm, OF_ALLTOALL))
        return 0;
    return (counts && places && types && into_counts && into_places && into_types) || give_up(plan);
}
FORMS(Alltoallw, alltoallw);
