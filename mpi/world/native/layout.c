/* How this MPI lays out the named types: data travels between sites in packed form, so they must agree on it.
 * The order of bytes in a number may differ (common/forms/forms.h). */
#include "world/handles/ours.h"
#include "world/native/data.h"

#include <stdlib.h>

/* FNV-1a, of 64 bits. */
static uint64_t add(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t add_number(uint64_t hash, int64_t number)
{
    for (int i = 0; i < 8; i++) {
        const unsigned char byte = (unsigned char)(number >> 8 * i);
        hash = add(hash, &byte, 1);
    }
    return hash;
}

/* The bytes of an element in the order in which they are packed. */
static uint64_t add_type(uint64_t hash, MPI_Datatype type)
{
    MPI_Count bytes = 0;
    MPI_Aint low = 0, extent = 0;
    unsigned char element[256], packed[256];
    if (real.Type_size_x(type, &bytes) != MPI_SUCCESS)
        return add(hash, "none", 4);
    real.Type_get_extent(type, &low, &extent);
    hash = add_number(hash, bytes);
    if (bytes > (MPI_Count)sizeof packed || extent > (MPI_Aint)sizeof element)
        return hash;
    for (size_t i = 0; i < sizeof element; i++)
        element[i] = (unsigned char)i;
    int position = 0;
    real.Pack(element, 1, type, packed, (int)sizeof packed, &position, ours.self);
    return add(hash, packed, (size_t)position);
}

uint64_t data_layout(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < TYPE_COUNT; i++)
        hash = add_type(hash, handle.types[i]);
    return hash;
}
