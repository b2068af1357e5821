#define _GNU_SOURCE
#include "collectives/transfer/datatype.h"

#include "common/binding/bottom.h"
#include "common/binding/combiner.h"
#include "common/forms/forms.h"

#include <stdlib.h>
#include <string.h>

/* A type whose constructor is unknown counts as named: it is not taken apart. */
int type_is_named(MPI_Datatype type)
{
    int combiner = combiner_of(type);
    return combiner == MPI_COMBINER_NAMED || combiner < 0;
}

/* Between sites with unlike processors, which the world library knows, data travels in a shared form. Returns
 * in what this processor's form differs from it. */
static uint8_t differ(void)
{
    static int (*is_unlike)(void);
    static int was_sought;
    if (!was_sought) {
        is_unlike = (int (*)(void))mpi_calls_of_world("causeway_world_is_unlike");
        was_sought = 1;
    }
    return is_unlike && is_unlike() ? forms_differ(forms_own(), FORMS_SHARED) : 0;
}

int shape_of(MPI_Datatype type, struct shape *shape)
{
    MPI_Aint lb;
    shape->type = type;
    if (type == handle.datatype_null || real.Type_size_x(type, &shape->size) ||
        real.Type_get_extent(type, &lb, &shape->extent) ||
        real.Type_get_true_extent(type, &shape->true_lb, &shape->true_extent))
        return 0;
    shape->is_contiguous = shape->size == shape->extent && lb == 0 && shape->true_lb == 0 &&
                           type_is_named(type) && !forms_concern(type, differ());
    return 1;
}

static int convert(MPI_Datatype type, char *bytes, int64_t length, uint8_t from, uint8_t to)
{
    struct form_map *map = NULL;
    int status = form_map_make(type, differ(), &map);
    form_map_convert(map, bytes, length, from, to);
    form_map_free(map);
    return status;
}

int64_t shape_bytes(const struct shape *shape, int64_t count)
{
    return shape->size > 0 && count > INT64_MAX / shape->size ? INT64_MAX : count * shape->size;
}

int pack(const void *buffer, int64_t count, const struct shape *shape, char *to, int64_t length)
{
    if (length == 0)
        return MPI_SUCCESS;
    if (shape->is_contiguous) {
        memcpy(to, buffer, length);
        return MPI_SUCCESS;
    }
    struct placed placed;
    int position = 0, status = bottom_place(buffer, shape->type, &placed);
    TRY(status,
        real.Pack(placed.buffer, (int)count, placed.type, to, (int)length, &position, handle.comm_self));
    bottom_end(&placed);
    if (differ())
        TRY(status, convert(shape->type, to, length, forms_own(), FORMS_SHARED));
    return status;
}

/* Makes a copy of packed bytes in this processor's form; *own is NULL if they already have it. */
static int own_form(const char *from, int64_t length, MPI_Datatype type, char **own)
{
    *own = NULL;
    if (!differ())
        return MPI_SUCCESS;
    *own = malloc(length);
    if (!*own)
        return MPI_ERR_NO_MEM;
    memcpy(*own, from, length);
    return convert(type, *own, length, FORMS_SHARED, forms_own());
}

int unpack(const char *from, int64_t length, void *buffer, int64_t count, const struct shape *shape)
{
    if (length == 0)
        return MPI_SUCCESS;
    if (shape->is_contiguous) {
        memcpy(buffer, from, length);
        return MPI_SUCCESS;
    }
    struct placed placed;
    char *own = NULL;
    int position = 0, status = bottom_place(buffer, shape->type, &placed);
    TRY(status, own_form(from, length, shape->type, &own));
    TRY(status, real.Unpack(own ? own : from, (int)length, &position, (void *)placed.buffer, (int)count,
                            placed.type, handle.comm_self));
    bottom_end(&placed);
    free(own);
    return status;
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

int bytes_pack(const void *buffer, int64_t count, const struct shape *shape, struct bytes *bytes)
{
    int status = bytes_room((void *)buffer, count, shape, bytes);
    if (status == MPI_SUCCESS && bytes->owned)
        status = pack(buffer, count, shape, bytes->owned, bytes->length);
    return status;
}

int bytes_unpack(const struct bytes *bytes, void *buffer, int64_t count, const struct shape *shape)
{
    return bytes->owned ? unpack(bytes->owned, bytes->length, buffer, count, shape) : MPI_SUCCESS;
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->owned);
    bytes->owned = NULL;
}

void *elements(int64_t count, const struct shape *shape, void **origin)
{
    /* The extent may be negative; then the last element has the lowest address. */
    int64_t span = count > 0 ? (count - 1) * (int64_t)llabs(shape->extent) : 0;
    char *memory = malloc(shape->true_extent + span + 1);
    if (memory)
        *origin = memory - shape->true_lb + (shape->extent < 0 ? span : 0);
    return memory;
}

int elements_copy(const void *from, void *into, int count, const struct shape *shape)
{
    struct bytes bytes;
    if (from == into || count == 0)
        return MPI_SUCCESS;
    int status = bytes_pack(from, count, shape, &bytes);
    TRY(status, unpack(bytes.at, bytes.length, into, count, shape));
    bytes_free(&bytes);
    return status;
}
