#include "world/native/data.h"

#include "common/binding/bottom.h"
#include "common/binding/combiner.h"
#include "world/handles/ours.h"

#include <stdlib.h>
#include <string.h>

/* MPI_Pack and MPI_Unpack count bytes in an int. */
enum { MOST_AT_ONCE = 1 << 30 };

int data_is_named(MPI_Datatype type) { return combiner_of(type) == MPI_COMBINER_NAMED; }

static int is_plain(MPI_Datatype type);

/* Structs of more parts are not examined, because this happens for every message. */
enum { MOST_PARTS = 4 };

/* Whether `count` parts, of plain types, follow each other without gaps. */
static int parts_follow(int count, const int *lengths, const MPI_Aint *displs, const MPI_Datatype *types)
{
    MPI_Aint end = 0;
    int is_right = 1;
    for (int i = 0; i < count; i++) {
        MPI_Count bytes = 0;
        is_right = is_right && displs[i] == end && is_plain(types[i]) &&
                   real.Type_size_x(types[i], &bytes) == MPI_SUCCESS;
        end += (MPI_Aint)(lengths[i] * bytes);
    }
    return is_right;
}

/* Whether a type is one or several elements of a plain type, or a struct of such types without gaps. */
static int is_row(MPI_Datatype type)
{
    struct envelope made;
    int combiner = combiner_envelope(type, &made), lengths[1 + MOST_PARTS];
    MPI_Aint displs[MOST_PARTS] = {0};
    MPI_Datatype of[MOST_PARTS];
    if (made.is_large || made.types > MOST_PARTS ||
        real.Type_get_contents(type, made.counts, made.addresses, made.types, lengths, displs, of) !=
            MPI_SUCCESS)
        return 0;
    int is_right =
        combiner == MPI_COMBINER_STRUCT ? parts_follow(made.types, lengths + 1, displs, of) : is_plain(of[0]);
    for (int i = 0; i < made.types; i++)
        if (!data_is_named(of[i]))
            real.Type_free(&of[i]);
    return is_right;
}

/* Whether elements are in memory as MPI_Pack would pack them: without gaps, and in the order of the type.
 * Size and extent do not show the order, which a struct or a list of blocks may reverse. */
static int is_plain(MPI_Datatype type)
{
    MPI_Count bytes;
    MPI_Aint low, extent, true_low, true_extent;
    int combiner = combiner_of(type);
    int is_of_others = combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP ||
                       combiner == MPI_COMBINER_STRUCT;
    if ((combiner != MPI_COMBINER_NAMED && !is_of_others) || real.Type_size_x(type, &bytes) != MPI_SUCCESS ||
        real.Type_get_extent(type, &low, &extent) != MPI_SUCCESS ||
        real.Type_get_true_extent(type, &true_low, &true_extent) != MPI_SUCCESS)
        return 0;
    return bytes == extent && bytes == true_extent && low == 0 && true_low == 0 &&
           (!is_of_others || is_row(type));
}

static int ask(MPI_Datatype type, struct shape *shape)
{
    MPI_Count bytes;
    int status = real.Type_size_x(type, &bytes);
    if (status == MPI_SUCCESS)
        *shape = (struct shape){bytes, is_plain(type)};
    return status;
}

/* Named types do not change, so the shape of the last one is kept. */
int data_shape(MPI_Datatype type, struct shape *shape)
{
    static MPI_Datatype last;
    static struct shape last_shape;
    static int has_last;
    if (has_last && last == type) {
        *shape = last_shape;
        return MPI_SUCCESS;
    }
    int status = ask(type, shape);
    if (status == MPI_SUCCESS && data_is_named(type)) {
        last = type;
        last_shape = *shape;
        has_last = 1;
    }
    return status;
}

static int64_t elements_at_once(const struct shape *shape)
{
    int64_t elements = shape->bytes ? MOST_AT_ONCE / shape->bytes : MOST_AT_ONCE;
    return elements ? elements : 1;
}

/* Where an element is in a buffer. */
static char *element(const void *buffer, MPI_Datatype type, int64_t index)
{
    MPI_Aint low, extent;
    real.Type_get_extent(type, &low, &extent);
    return (char *)buffer + index * extent;
}

int data_pack(const void *buffer, int count, MPI_Datatype type, const struct shape *shape, char *packed)
{
    if (shape->is_plain) {
        memcpy(packed, buffer, (size_t)(count * shape->bytes));
        return MPI_SUCCESS;
    }
    struct placed from;
    int status = bottom_place(buffer, type, &from);
    int64_t most = elements_at_once(shape);
    for (int64_t at = 0; at < count && status == MPI_SUCCESS; at += most) {
        int many = (int)(count - at < most ? count - at : most), position = 0;
        status = real.Pack(element(from.buffer, from.type, at), many, from.type, packed + at * shape->bytes,
                           (int)(many * shape->bytes), &position, ours.self);
    }
    bottom_end(&from);
    return status;
}

/* Unpacks part of an element: packs the element as it is, puts the received bytes over its beginning, and
 * unpacks it again. */
static int unpack_part(const char *packed, int64_t bytes, char *into, MPI_Datatype type,
                       const struct shape *shape)
{
    char *whole = malloc((size_t)shape->bytes);
    if (!whole)
        return MPI_ERR_NO_MEM;
    int position = 0, status = real.Pack(into, 1, type, whole, (int)shape->bytes, &position, ours.self);
    memcpy(whole, packed, (size_t)bytes);
    position = 0;
    TRY(status, real.Unpack(whole, (int)shape->bytes, &position, into, 1, type, ours.self));
    free(whole);
    return status;
}

int data_unpack(const char *packed, int64_t bytes, void *buffer, MPI_Datatype type, const struct shape *shape)
{
    struct placed to;
    int status = bottom_place(buffer, type, &to);
    int64_t count = shape->bytes ? bytes / shape->bytes : 0, most = elements_at_once(shape);
    for (int64_t at = 0; at < count && status == MPI_SUCCESS; at += most) {
        int many = (int)(count - at < most ? count - at : most), position = 0;
        status = real.Unpack(packed + at * shape->bytes, (int)(many * shape->bytes), &position,
                             element(to.buffer, to.type, at), many, to.type, ours.self);
    }
    int64_t left = bytes - count * shape->bytes;
    if (left && status == MPI_SUCCESS)
        status = unpack_part(packed + count * shape->bytes, left, element(to.buffer, to.type, count), to.type,
                             shape);
    bottom_end(&to);
    return status;
}
