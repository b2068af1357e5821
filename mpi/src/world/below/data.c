#include "world/below/data.h"

#include "world/handles/ours.h"

#include <stdlib.h>
#include <string.h>

/* MPI_Pack and MPI_Unpack count bytes in an int. */
enum { MOST_AT_ONCE = 1 << 30 };

static int combiner_of(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    int status = real.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return status == MPI_SUCCESS ? combiner : MPI_UNDEFINED;
}

int data_is_named(MPI_Datatype type) { return combiner_of(type) == MPI_COMBINER_NAMED; }

/* Whether the elements of a type without gaps lie in the order in which they are sent. A vector of vectors
 * may fill its extent and be transposed; only what is known to be in order is taken for that. */
static int is_in_order(MPI_Datatype type)
{
    int count[1];
    MPI_Aint none[1];
    MPI_Datatype inner;
    switch (combiner_of(type)) {
    case MPI_COMBINER_NAMED:
        return 1;
    case MPI_COMBINER_DUP:
        if (real.Type_get_contents(type, 0, 0, 1, count, none, &inner) != MPI_SUCCESS)
            return 0;
        break;
    case MPI_COMBINER_CONTIGUOUS:
        if (real.Type_get_contents(type, 1, 0, 1, count, none, &inner) != MPI_SUCCESS)
            return 0;
        break;
    default:
        return 0;
    }
    int in_order = is_in_order(inner);
    if (!data_is_named(inner))
        real.Type_free(&inner);
    return in_order;
}

static int ask(MPI_Datatype type, struct shape *shape)
{
    MPI_Count bytes;
    MPI_Aint low, extent, true_low, true_extent;
    int status = MPI_SUCCESS;
    TRY(status, real.Type_size_x(type, &bytes));
    TRY(status, real.Type_get_extent(type, &low, &extent));
    TRY(status, real.Type_get_true_extent(type, &true_low, &true_extent));
    if (status == MPI_SUCCESS)
        *shape = (struct shape){bytes, bytes == extent && bytes == true_extent && low == 0 && true_low == 0 &&
                                           is_in_order(type)};
    return status;
}

/* Named types stay what they are, so the last one's shape is kept. */
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
    int status = MPI_SUCCESS;
    int64_t most = elements_at_once(shape);
    for (int64_t at = 0; at < count && status == MPI_SUCCESS; at += most) {
        int many = (int)(count - at < most ? count - at : most), position = 0;
        status = real.Pack(element(buffer, type, at), many, type, packed + at * shape->bytes,
                           (int)(many * shape->bytes), &position, ours.self);
    }
    return status;
}

/* Unpacks a part of one element: the element is packed as it is, and what has come is laid over it. */
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
    int status = MPI_SUCCESS;
    int64_t count = shape->bytes ? bytes / shape->bytes : 0, most = elements_at_once(shape);
    for (int64_t at = 0; at < count && status == MPI_SUCCESS; at += most) {
        int many = (int)(count - at < most ? count - at : most), position = 0;
        status = real.Unpack(packed + at * shape->bytes, (int)(many * shape->bytes), &position,
                             element(buffer, type, at), many, type, ours.self);
    }
    int64_t left = bytes - count * shape->bytes;
    if (left && status == MPI_SUCCESS)
        status = unpack_part(packed + count * shape->bytes, left, element(buffer, type, count), type, shape);
    return status;
}
