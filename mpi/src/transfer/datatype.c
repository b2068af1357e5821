#define _GNU_SOURCE
#include "transfer/datatype.h"

#include <stdlib.h>
#include <string.h>

/* MPI has this since version 4, where the older call refuses what was made with large counts. */
typedef int large_envelope(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);

int type_is_named(MPI_Datatype type)
{
    static large_envelope *large;
    static int was_sought;
    int combiner, integers, addresses, types;
    MPI_Count many[4];
    if (!was_sought) {
        large = (large_envelope *)mpi_calls_find("Type_get_envelope_c");
        was_sought = 1;
    }
    if (type == handle.datatype_null ||
        (large ? large(type, &many[0], &many[1], &many[2], &many[3], &combiner)
               : real.Type_get_envelope(type, &integers, &addresses, &types, &combiner)))
        return 1;
    return combiner == MPI_COMBINER_NAMED;
}

int shape_of(MPI_Datatype type, struct shape *shape)
{
    MPI_Aint lb;
    shape->type = type;
    if (type == handle.datatype_null || real.Type_size_x(type, &shape->size) ||
        real.Type_get_extent(type, &lb, &shape->extent) ||
        real.Type_get_true_extent(type, &shape->true_lb, &shape->true_extent))
        return 0;
    shape->is_contiguous =
        shape->size == shape->extent && lb == 0 && shape->true_lb == 0 && type_is_named(type);
    return 1;
}

int64_t shape_bytes(const struct shape *shape, int64_t count)
{
    return shape->size > 0 && count > INT64_MAX / shape->size ? INT64_MAX : count * shape->size;
}

int pack(const void *buffer, int64_t count, const struct shape *shape, char *to, int64_t length,
         MPI_Comm comm)
{
    if (length == 0)
        return MPI_SUCCESS;
    if (shape->is_contiguous) {
        memcpy(to, buffer, length);
        return MPI_SUCCESS;
    }
    int position = 0;
    return real.Pack(buffer, (int)count, shape->type, to, (int)length, &position, comm);
}

int unpack(const char *from, int64_t length, void *buffer, int64_t count, const struct shape *shape,
           MPI_Comm comm)
{
    if (length == 0)
        return MPI_SUCCESS;
    if (shape->is_contiguous) {
        memcpy(buffer, from, length);
        return MPI_SUCCESS;
    }
    int position = 0;
    return real.Unpack(from, (int)length, &position, buffer, (int)count, shape->type, comm);
}

int bytes_room(void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes)
{
    bytes->length = count * shape->size;
    bytes->owned = NULL;
    bytes->at = buffer;
    if (shape->is_contiguous || bytes->length == 0)
        return MPI_SUCCESS;
    bytes->at = bytes->owned = malloc(bytes->length);
    return bytes->owned ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int bytes_pack(const void *buffer, int64_t count, const struct shape *shape, MPI_Comm comm,
               struct bytes *bytes)
{
    int status = bytes_room((void *)buffer, count, shape, bytes);
    if (status == MPI_SUCCESS && bytes->owned)
        status = pack(buffer, count, shape, bytes->owned, bytes->length, comm);
    return status;
}

int bytes_unpack(const struct bytes *bytes, void *buffer, int64_t count, const struct shape *shape,
                 MPI_Comm comm)
{
    return bytes->owned ? unpack(bytes->owned, bytes->length, buffer, count, shape, comm) : MPI_SUCCESS;
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->owned);
    bytes->owned = NULL;
}

void *elements(int64_t count, const struct shape *shape, void **origin)
{
    /* The extent may be negative. Then the last element lies lowest. */
    int64_t span = count > 0 ? (count - 1) * (int64_t)llabs(shape->extent) : 0;
    char *memory = malloc(shape->true_extent + span + 1);
    if (memory)
        *origin = memory - shape->true_lb + (shape->extent < 0 ? span : 0);
    return memory;
}

int elements_copy(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape)
{
    struct bytes bytes;
    if (from == into || count == 0)
        return MPI_SUCCESS;
    int status = bytes_pack(from, count, shape, on->across, &bytes);
    TRY(status, unpack(bytes.at, bytes.length, into, count, shape, on->across));
    bytes_free(&bytes);
    return status;
}
