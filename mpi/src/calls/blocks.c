/* Calls with a block for each rank: gather, scatter, allgather, alltoall. See vectors.c. */
#define _GNU_SOURCE
#include "algorithms/algorithms.h"
#include "calls/enter.h"
#include "intra_site/combine.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Elements for each rank and where they begin, in bytes; `types` where asked for. */
struct columns {
    MPI_Count *counts;
    MPI_Aint *places;
    MPI_Datatype *types;
};

static int columns_make(struct columns *all, const struct hierarchy *on)
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

/* Equal blocks, one behind the other. */
static int columns_even(struct columns *all, const struct hierarchy *on, int64_t count, const struct shape *shape)
{
    int status = columns_make(all, on);
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        all->counts[i] = count;
        all->places[i] = (MPI_Aint)count * i * shape->extent;
        all->types[i] = shape->type;
    }
    return status;
}

/* What a call with v in its name says; `type` for all. */
static int columns_of(struct columns *all, const struct hierarchy *on, const struct vector *said, MPI_Aint extent, MPI_Datatype type)
{
    int status = columns_make(all, on);
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        all->counts[i] = vector_count(said, i);
        all->places[i] = vector_place(said, i) * extent;
        all->types[i] = type;
    }
    return status;
}

static int is_said(const struct vector *said) { return has_counts(said) && has_places(said); }

static int gather(struct hierarchy *on, const void *from, int64_t count, const struct shape *shape, void *into, int64_t into_count,
                  const struct shape *into_shape, int root, const struct choice *choice)
{
    struct columns all = {0};
    int status = MPI_SUCCESS;
    int at_root = on->rank == root;
    if (choice->algorithm == DIRECT) {
        if (at_root)
            status = columns_even(&all, on, into_count, into_shape);
        TRY(status, gather_direct(on, from, count, at_root && from == MPI_IN_PLACE ? handle.byte : shape->type, into, all.counts, all.places,
                                  at_root ? into_shape->type : handle.byte, root));
        columns_free(&all);
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
    TRY(status, gather_leaders(on, bytes.at, bytes.length, room, root));
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
#define L_Gather const void *from, MPI_Count count, MPI_Datatype type, void *into, MPI_Count into_count, MPI_Datatype into_type, int root, MPI_Comm comm
#define A_Gather from, count, type, into, into_count, into_type, root, comm

static int run_gather(struct hierarchy *on, const struct plan *plan)
{
    return gather(on, plan->from, plan->count, &plan->shape, plan->into, plan->into_count, &plan->into_shape, plan->root, &plan->choice);
}

static int plan_gather(struct plan *plan, L_Gather)
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
LARGE_FORMS(Gather, gather, plan_gather);

#define P_Gatherv const void *from, int count, MPI_Datatype type, void *into, const int counts[], const int places[], MPI_Datatype into_type, \
                  int root, MPI_Comm comm
#define L_Gatherv const void *from, MPI_Count count, MPI_Datatype type, void *into, const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype into_type, \
                  int root, MPI_Comm comm
#define A_Gatherv from, count, type, into, counts, places, into_type, root, comm

static int run_gatherv(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = on->rank == plan->root ? columns_of(&all, on, &plan->in, plan->shape.extent, plan->into_type) : MPI_SUCCESS;
    TRY(status, gather_direct(on, plan->from, plan->count, plan->type, plan->into, all.counts, all.places, plan->into_type, plan->root));
    columns_free(&all);
    return status;
}

static int enter_gatherv(struct plan *plan, const void *from, MPI_Count count, MPI_Datatype type, void *into, MPI_Datatype into_type,
                         int root, MPI_Comm comm)
{
    plan->from = from, plan->count = count, plan->type = type, plan->into = into, plan->into_type = into_type;
    plan->root = root, plan->run = run_gatherv;
    if (!enter_any(plan, comm, OF_GATHER))
        return 0;
    /* The others may have said anything. */
    if (plan->on->rank != root)
        plan->in = (struct vector){0};
    else if (!is_said(&plan->in) || !shape_of(into_type, &plan->shape))
        return give_up(plan);
    return is_root(plan->on, root) || give_up(plan);
}

static int plan_gatherv(struct plan *plan, P_Gatherv)
{
    plan->in = (struct vector){.counts = counts, .places = places};
    return enter_gatherv(plan, from, count, type, into, into_type, root, comm);
}

static int plan_large_gatherv(struct plan *plan, L_Gatherv)
{
    plan->in = (struct vector){.large_counts = counts, .large_places = places};
    return enter_gatherv(plan, from, count, type, into, into_type, root, comm);
}
FORMS(Gatherv, gatherv);
LARGE_FORMS(Gatherv, gatherv, plan_large_gatherv);

static int scatter(struct hierarchy *on, const void *from, int64_t from_count, const struct shape *from_shape, void *into, int64_t count,
                   const struct shape *shape, int root, const struct choice *choice)
{
    struct columns all = {0};
    int status = MPI_SUCCESS;
    int at_root = on->rank == root;
    if (choice->algorithm == DIRECT) {
        if (at_root)
            status = columns_even(&all, on, from_count, from_shape);
        TRY(status, scatter_direct(on, from, all.counts, all.places, at_root ? from_shape->type : handle.byte, into, count,
                                   into == MPI_IN_PLACE ? handle.byte : shape->type, root));
        columns_free(&all);
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
        TRY(status, own ? scatter_leaders(on, room, length, own, root) : MPI_ERR_NO_MEM);
    } else {
        TRY(status, bytes_room(into, count, shape, &bytes));
        TRY(status, scatter_leaders(on, room, length, bytes.at, root));
        TRY(status, bytes_unpack(&bytes, into, count, shape, on->across));
        bytes_free(&bytes);
    }
    free(own);
    free(room);
    return status;
}

#define P_Scatter const void *from, int from_count, MPI_Datatype from_type, void *into, int count, MPI_Datatype type, int root, MPI_Comm comm
#define L_Scatter const void *from, MPI_Count from_count, MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm
#define A_Scatter from, from_count, from_type, into, count, type, root, comm

/* What the root sends is of shape `shape`, what everybody gets of shape `into_shape`. */
static int run_scatter(struct hierarchy *on, const struct plan *plan)
{
    return scatter(on, plan->from, plan->count, &plan->shape, plan->into, plan->into_count, &plan->into_shape, plan->root, &plan->choice);
}

static int plan_scatter(struct plan *plan, L_Scatter)
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
LARGE_FORMS(Scatter, scatter, plan_scatter);

#define P_Scatterv const void *from, const int counts[], const int places[], MPI_Datatype from_type, void *into, int count, MPI_Datatype type, \
                   int root, MPI_Comm comm
#define L_Scatterv const void *from, const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, \
                   int root, MPI_Comm comm
#define A_Scatterv from, counts, places, from_type, into, count, type, root, comm

static int run_scatterv(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = on->rank == plan->root ? columns_of(&all, on, &plan->out, plan->shape.extent, plan->type) : MPI_SUCCESS;
    TRY(status, scatter_direct(on, plan->from, all.counts, all.places, plan->type, plan->into, plan->into_count, plan->into_type, plan->root));
    columns_free(&all);
    return status;
}

static int enter_scatterv(struct plan *plan, const void *from, MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type,
                          int root, MPI_Comm comm)
{
    plan->from = from, plan->type = from_type, plan->into = into, plan->into_count = count, plan->into_type = type;
    plan->root = root, plan->run = run_scatterv;
    if (!enter_any(plan, comm, OF_SCATTER))
        return 0;
    if (plan->on->rank != root)
        plan->out = (struct vector){0};
    else if (!is_said(&plan->out) || !shape_of(from_type, &plan->shape))
        return give_up(plan);
    return is_root(plan->on, root) || give_up(plan);
}

static int plan_scatterv(struct plan *plan, P_Scatterv)
{
    plan->out = (struct vector){.counts = counts, .places = places};
    return enter_scatterv(plan, from, from_type, into, count, type, root, comm);
}

static int plan_large_scatterv(struct plan *plan, L_Scatterv)
{
    plan->out = (struct vector){.large_counts = counts, .large_places = places};
    return enter_scatterv(plan, from, from_type, into, count, type, root, comm);
}
FORMS(Scatterv, scatterv);
LARGE_FORMS(Scatterv, scatterv, plan_large_scatterv);

/* Every rank's `counts[rank]` elements at byte `places[rank]` of `into`, from all to all. */
static int allgather(struct hierarchy *on, const void *from, int64_t count, const struct shape *shape, void *into,
                     const MPI_Count counts[], const MPI_Aint places[], const struct shape *into_shape, const struct choice *choice)
{
    struct bytes own = {0};
    int64_t *lengths = malloc(2 * on->size * sizeof *lengths), *at = lengths + on->size, all = 0;
    /* With several leaders everything comes to its place at once, where that is so many bytes in a row. */
    int multi_leader = choice->algorithm == MULTI_LEADER, in_place = multi_leader && into_shape->is_plain;
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
    if (multi_leader) {
        char *mine = room + at[on->first[on->site] + on->local_rank];
        if (status == MPI_SUCCESS && own.length > 0 && own.at != mine)
            memcpy(mine, own.at, own.length);
        TRY(status, allgather_multi_leader(on, lengths, at, room, choice->segment));
    } else {
        TRY(status, allgather_leaders(on, own.at, lengths[0], room));
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
#define L_Allgather const void *from, MPI_Count count, MPI_Datatype type, void *into, MPI_Count into_count, MPI_Datatype into_type, MPI_Comm comm
#define A_Allgather from, count, type, into, into_count, into_type, comm

static int run_allgather(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = columns_even(&all, on, plan->into_count, &plan->into_shape);
    TRY(status, allgather(on, plan->from, plan->count, &plan->shape, plan->into, all.counts, all.places, &plan->into_shape, &plan->choice));
    columns_free(&all);
    return status;
}

static int plan_allgather(struct plan *plan, L_Allgather)
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count, plan->run = run_allgather;
    if (!enter(plan, comm, OF_ALLGATHER, into_count, into_type))
        return 0;
    plan->into_shape = plan->shape;
    return from == MPI_IN_PLACE || (count >= 0 && shape_of(type, &plan->shape)) || give_up(plan);
}
FORMS(Allgather, allgather);
LARGE_FORMS(Allgather, allgather, plan_allgather);

#define P_Allgatherv const void *from, int count, MPI_Datatype type, void *into, const int counts[], const int places[], \
                     MPI_Datatype into_type, MPI_Comm comm
#define L_Allgatherv const void *from, MPI_Count count, MPI_Datatype type, void *into, const MPI_Count counts[], const MPI_Aint places[], \
                     MPI_Datatype into_type, MPI_Comm comm
#define A_Allgatherv from, count, type, into, counts, places, into_type, comm

static int run_allgatherv(struct hierarchy *on, const struct plan *plan)
{
    struct columns all = {0};
    int status = columns_of(&all, on, &plan->in, plan->into_shape.extent, plan->into_type);
    TRY(status, allgather(on, plan->from, plan->count, &plan->shape, plan->into, all.counts, all.places, &plan->into_shape, &plan->choice));
    columns_free(&all);
    return status;
}

static int enter_allgatherv(struct plan *plan, const void *from, MPI_Count count, MPI_Datatype type, void *into, MPI_Datatype into_type,
                            MPI_Comm comm)
{
    int64_t longest = 0;
    plan->from = from, plan->count = count, plan->into = into, plan->into_type = into_type, plan->run = run_allgatherv;
    if (!enter_any(plan, comm, OF_ALLGATHER))
        return 0;
    if (!is_said(&plan->in) || !shape_of(into_type, &plan->into_shape))
        return give_up(plan);
    for (int i = 0; i < plan->on->size; i++) {
        int64_t there = vector_count(&plan->in, i);
        longest = there > longest ? there : longest;
        if (there < 0)
            return give_up(plan);
    }
    plan->choice = choose(plan->on, OF_ALLGATHER, shape_bytes(&plan->into_shape, longest), 1);
    if (plan->choice.algorithm == NATIVE || (from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &plan->shape))))
        return give_up(plan);
    /* Parts of different length have no other algorithm. */
    plan->choice.algorithm = MULTI_LEADER;
    return 1;
}

static int plan_allgatherv(struct plan *plan, P_Allgatherv)
{
    plan->in = (struct vector){.counts = counts, .places = places};
    return enter_allgatherv(plan, from, count, type, into, into_type, comm);
}

static int plan_large_allgatherv(struct plan *plan, L_Allgatherv)
{
    plan->in = (struct vector){.large_counts = counts, .large_places = places};
    return enter_allgatherv(plan, from, count, type, into, into_type, comm);
}
FORMS(Allgatherv, allgatherv);
LARGE_FORMS(Allgatherv, allgatherv, plan_large_allgatherv);

/* Small blocks, by way of one rank of each site. */
static int alltoall_small(struct hierarchy *on, const void *from, int64_t count, const struct shape *shape, void *into, int64_t into_count,
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
    TRY(status, alltoall_leaders(on, rows, length, came));
    for (int i = 0; i < on->size; i++)
        TRY(status, unpack(came + i * length, length, (char *)into + (MPI_Aint)on->members[i] * into_count * into_shape->extent,
                           into_count, into_shape, on->across));
    free(rows);
    return status;
}

#define P_Alltoall P_Allgather
#define L_Alltoall L_Allgather
#define A_Alltoall A_Allgather

static int run_alltoall(struct hierarchy *on, const struct plan *plan)
{
    const void *from = plan->from;
    int64_t count = plan->count, into_count = plan->into_count;
    struct shape shape = plan->shape, into_shape = plan->into_shape;
    if (plan->choice.algorithm == LEADERS)
        return alltoall_small(on, from, count, &shape, plan->into, into_count, &into_shape);
    struct columns out = {0}, in = {0};
    void *memory = NULL, *copy = NULL;
    int status = MPI_SUCCESS;
    /* In place everything is sent from a copy. */
    if (from == MPI_IN_PLACE) {
        memory = elements(into_count * on->size, &into_shape, &copy);
        status = memory ? elements_copy(on, plan->into, copy, (int)into_count * on->size, &into_shape) : MPI_ERR_NO_MEM;
        from = copy, count = into_count, shape = into_shape;
    }
    TRY(status, columns_even(&out, on, count, &shape));
    TRY(status, columns_even(&in, on, into_count, &into_shape));
    TRY(status, alltoall_direct(on, from, out.counts, out.places, out.types, plan->into, in.counts, in.places, in.types));
    columns_free(&out);
    columns_free(&in);
    free(memory);
    return status;
}

static int plan_alltoall(struct plan *plan, L_Alltoall)
{
    plan->from = from, plan->count = count, plan->into = into, plan->into_count = into_count, plan->run = run_alltoall;
    if (!enter(plan, comm, OF_ALLTOALL, into_count, into_type))
        return 0;
    plan->into_shape = plan->shape;
    if (from != MPI_IN_PLACE && (count < 0 || !shape_of(type, &plan->shape)))
        return give_up(plan);
    /* Bytes, which all ranks find alike. */
    return into_count * plan->into_shape.size * plan->on->size <= INT_MAX || give_up(plan);
}
FORMS(Alltoall, alltoall);
LARGE_FORMS(Alltoall, alltoall, plan_alltoall);

#define P_Alltoallv const void *from, const int counts[], const int places[], MPI_Datatype type, void *into, const int into_counts[], \
                    const int into_places[], MPI_Datatype into_type, MPI_Comm comm
#define L_Alltoallv const void *from, const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype type, void *into, const MPI_Count into_counts[], \
                    const MPI_Aint into_places[], MPI_Datatype into_type, MPI_Comm comm
#define A_Alltoallv from, counts, places, type, into, into_counts, into_places, into_type, comm

static int run_alltoallv(struct hierarchy *on, const struct plan *plan)
{
    struct columns out = {0}, in = {0};
    int status = columns_of(&out, on, &plan->out, plan->shape.extent, plan->shape.type);
    TRY(status, columns_of(&in, on, &plan->in, plan->into_shape.extent, plan->into_shape.type));
    TRY(status, alltoall_direct(on, plan->from, out.counts, out.places, out.types, plan->into, in.counts, in.places, in.types));
    columns_free(&out);
    columns_free(&in);
    return status;
}

static int enter_alltoallv(struct plan *plan, const void *from, MPI_Datatype type, void *into, MPI_Datatype into_type, MPI_Comm comm)
{
    plan->from = from, plan->into = into, plan->run = run_alltoallv;
    /* In place is a word of every rank or of none. */
    if (from == MPI_IN_PLACE || !enter_any(plan, comm, OF_ALLTOALL))
        return 0;
    return (is_said(&plan->out) && is_said(&plan->in) && shape_of(type, &plan->shape) && shape_of(into_type, &plan->into_shape)) ||
           give_up(plan);
}

static int plan_alltoallv(struct plan *plan, P_Alltoallv)
{
    plan->out = (struct vector){.counts = counts, .places = places};
    plan->in = (struct vector){.counts = into_counts, .places = into_places};
    return enter_alltoallv(plan, from, type, into, into_type, comm);
}

static int plan_large_alltoallv(struct plan *plan, L_Alltoallv)
{
    plan->out = (struct vector){.large_counts = counts, .large_places = places};
    plan->in = (struct vector){.large_counts = into_counts, .large_places = into_places};
    return enter_alltoallv(plan, from, type, into, into_type, comm);
}
FORMS(Alltoallv, alltoallv);
LARGE_FORMS(Alltoallv, alltoallv, plan_large_alltoallv);

#define P_Alltoallw const void *from, const int counts[], const int places[], const MPI_Datatype types[], void *into, \
                    const int into_counts[], const int into_places[], const MPI_Datatype into_types[], MPI_Comm comm
#define L_Alltoallw const void *from, const MPI_Count counts[], const MPI_Aint places[], const MPI_Datatype types[], void *into, \
                    const MPI_Count into_counts[], const MPI_Aint into_places[], const MPI_Datatype into_types[], MPI_Comm comm
#define A_Alltoallw from, counts, places, types, into, into_counts, into_places, into_types, comm

static int run_alltoallw(struct hierarchy *on, const struct plan *plan)
{
    struct columns out = {0}, in = {0};
    /* Places are in bytes, and types the program's. */
    int status = columns_of(&out, on, &plan->out, 1, handle.byte);
    TRY(status, columns_of(&in, on, &plan->in, 1, handle.byte));
    TRY(status, alltoall_direct(on, plan->from, out.counts, out.places, plan->types, plan->into, in.counts, in.places, plan->into_types));
    columns_free(&out);
    columns_free(&in);
    return status;
}

static int enter_alltoallw(struct plan *plan, const void *from, const MPI_Datatype types[], void *into, const MPI_Datatype into_types[],
                           MPI_Comm comm)
{
    plan->from = from, plan->types = types, plan->into = into, plan->into_types = into_types, plan->run = run_alltoallw;
    if (from == MPI_IN_PLACE || !enter_any(plan, comm, OF_ALLTOALL))
        return 0;
    return (is_said(&plan->out) && is_said(&plan->in) && types && into_types) || give_up(plan);
}

static int plan_alltoallw(struct plan *plan, P_Alltoallw)
{
    plan->out = (struct vector){.counts = counts, .places = places};
    plan->in = (struct vector){.counts = into_counts, .places = into_places};
    return enter_alltoallw(plan, from, types, into, into_types, comm);
}

static int plan_large_alltoallw(struct plan *plan, L_Alltoallw)
{
    plan->out = (struct vector){.large_counts = counts, .large_places = places};
    plan->in = (struct vector){.large_counts = into_counts, .large_places = into_places};
    return enter_alltoallw(plan, from, types, into, into_types, comm);
}
FORMS(Alltoallw, alltoallw);
LARGE_FORMS(Alltoallw, alltoallw, plan_large_alltoallw);
