#include "common/forms/forms.h"

#include "common/binding/combiner.h"

#include <float.h>
#include <stdlib.h>
#include <wchar.h>

/* One part of an element, in the order of packed bytes: a number, a long double, a list of parts, or other
 * bytes, repeated `times` times. */
struct form_map {
    struct form_map *next;
    enum { OTHERS, NUMBER, LONG_DOUBLE, PARTS } kind;
    int64_t times, bytes;
    struct form_map *parts;
};

uint8_t forms_own(void)
{
    return (uint8_t)((LDBL_MANT_DIG == 64 ? LONG_DOUBLE_X87 : LONG_DOUBLE_QUAD) |
                     ((char)-1 > 0 ? FORMS_UNSIGNED_CHAR : 0) | ((wchar_t)-1 > 0 ? FORMS_UNSIGNED_WCHAR : 0) |
                     (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? FORMS_BIG_ENDIAN : 0));
}

uint8_t forms_differ(uint8_t one, uint8_t other)
{
    uint8_t bits = one ^ other;
    return (uint8_t)((bits & FORMS_LONG_DOUBLE ? FORMS_LONG_DOUBLE : 0) | (bits & FORMS_BIG_ENDIAN));
}

static int is_one_of(MPI_Datatype type, const MPI_Datatype *types, int count)
{
    while (count > 0 && types[count - 1] != type)
        count--;
    return count > 0;
}

/* Whether a named type consists of two numbers of the same kind. */
static int is_pair(MPI_Datatype named)
{
    const MPI_Datatype more[] = {handle.types[TYPE_FLOAT_INT], handle.types[TYPE_2INT],
                                 handle.types[TYPE_C_LONG_DOUBLE_COMPLEX]};
    return is_one_of(named, more, 3) || is_one_of(named, handle.pairs, PAIR_COUNT);
}

static int has_long_doubles(MPI_Datatype named)
{
    const MPI_Datatype all[] = {handle.types[TYPE_LONG_DOUBLE], handle.types[TYPE_LONG_DOUBLE_INT],
                                handle.types[TYPE_C_LONG_DOUBLE_COMPLEX],
                                handle.pairs[PAIR_CXX_LONG_DOUBLE_COMPLEX]};
    return named != handle.datatype_null && is_one_of(named, all, 4);
}

int forms_concern(MPI_Datatype named, uint8_t differ)
{
    MPI_Count bytes = 0;
    if (differ & FORMS_LONG_DOUBLE && has_long_doubles(named))
        return 1;
    return differ & FORMS_BIG_ENDIAN && real.Type_size_x(named, &bytes) == MPI_SUCCESS && bytes > 1;
}

void form_map_free(struct form_map *map)
{
    while (map) {
        struct form_map *next = map->next;
        form_map_free(map->parts);
        free(map);
        map = next;
    }
}

static int64_t sum(const struct form_map *map)
{
    int64_t bytes = 0;
    for (; map; map = map->next)
        bytes += map->times * map->bytes;
    return bytes;
}

static int has_numbers(const struct form_map *map)
{
    for (; map; map = map->next)
        if (map->kind != OTHERS && map->times > 0)
            return 1;
    return 0;
}

/* Adds a part at the end of a list, which then owns `parts`. */
static int add(struct form_map **list, int kind, int64_t times, int64_t bytes, struct form_map *parts)
{
    struct form_map *map = malloc(sizeof *map);
    if (!map) {
        form_map_free(parts);
        return MPI_ERR_NO_MEM;
    }
    *map = (struct form_map){.kind = kind, .times = times, .bytes = bytes, .parts = parts};
    while (*list)
        list = &(*list)->next;
    *list = map;
    return MPI_SUCCESS;
}

/* The types from which a derived type was made. */
struct contents {
    int types;
    /* How often each occurs in a struct; not used for other constructors. */
    int64_t *times;
    MPI_Datatype *of;
};

/* These exist since MPI 4, for types that were made with large counts. */
typedef int large_envelope(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);
typedef int large_contents(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *, MPI_Aint *,
                           MPI_Count *, MPI_Datatype *);

static int read_large(MPI_Datatype type, int is_struct, struct contents *contents)
{
    large_envelope *envelope = (large_envelope *)mpi_calls_find("Type_get_envelope_c");
    large_contents *get = (large_contents *)mpi_calls_find("Type_get_contents_c");
    MPI_Count ints = 0, addresses = 0, counts = 0, types = 0;
    int combiner;
    if (!envelope || !get || envelope(type, &ints, &addresses, &counts, &types, &combiner))
        return MPI_ERR_TYPE;
    int *integers = calloc((size_t)ints + 1, sizeof *integers);
    MPI_Aint *places = calloc((size_t)addresses + 1, sizeof *places);
    MPI_Count *large = calloc((size_t)counts + 1, sizeof *large);
    int status = !integers || !places || !large ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    TRY(status, get(type, ints, addresses, counts, types, integers, places, large, contents->of));
    for (int i = 0; is_struct && i < contents->types && status == MPI_SUCCESS; i++)
        contents->times[i] = 1 + i < counts ? large[1 + i] : 0;
    free(integers);
    free(places);
    free(large);
    return status;
}

static int read_small(MPI_Datatype type, const struct envelope *made, int is_struct,
                      struct contents *contents)
{
    int *counts = calloc((size_t)made->counts + 1, sizeof *counts);
    MPI_Aint *places = calloc((size_t)made->addresses + 1, sizeof *places);
    int status = !counts || !places ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    TRY(status, real.Type_get_contents(type, made->counts, made->addresses, made->types, counts, places,
                                       contents->of));
    for (int i = 0; is_struct && i < made->types && status == MPI_SUCCESS; i++)
        contents->times[i] = 1 + i < made->counts ? counts[1 + i] : 0;
    free(counts);
    free(places);
    return status;
}

/* MPIs return the types of Fortran's kinds as they do named ones: they must not be freed. */
static int is_named(MPI_Datatype type)
{
    int combiner = combiner_of(type);
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static int make(MPI_Datatype type, uint8_t differ, struct form_map **list);

/* The parts of a struct, in order; for other constructors, the one type as often as the size says. */
static int make_of(const struct contents *contents, int is_struct, int64_t size, uint8_t differ,
                   struct form_map **list)
{
    int status = MPI_SUCCESS;
    for (int i = 0; i < contents->types; i++) {
        struct form_map *parts = NULL;
        TRY(status, make(contents->of[i], differ, &parts));
        int64_t bytes = sum(parts), times = is_struct ? contents->times[i] : 1;
        if (!is_struct && contents->types == 1)
            times = bytes > 0 ? size / bytes : 0;
        if (status != MPI_SUCCESS)
            form_map_free(parts);
        TRY(status, add(list, has_numbers(parts) ? PARTS : OTHERS, times, bytes, parts));
    }
    return status;
}

static int make_derived(MPI_Datatype type, int combiner, const struct envelope *made, int64_t size,
                        uint8_t differ, struct form_map **list)
{
    int is_struct = combiner == MPI_COMBINER_STRUCT;
    struct contents contents = {made->types, calloc((size_t)made->types + 1, sizeof *contents.times),
                                calloc((size_t)made->types + 1, sizeof *contents.of)};
    int status = !contents.times || !contents.of ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    TRY(status, made->is_large ? read_large(type, is_struct, &contents)
                               : read_small(type, made, is_struct, &contents));
    if (status == MPI_SUCCESS) {
        status = make_of(&contents, is_struct, size, differ, list);
        for (int i = 0; i < made->types; i++)
            if (!is_named(contents.of[i]))
                real.Type_free(&contents.of[i]);
    }
    free(contents.times);
    free(contents.of);
    return status;
}

/* Adds `times` numbers; as other bytes if their forms do not differ. */
static int add_numbers(struct form_map **list, int kind, int64_t times, int64_t bytes, uint8_t differ)
{
    int is_other = kind == LONG_DOUBLE ? differ == 0 : (differ & FORMS_BIG_ENDIAN) == 0 || bytes == 1;
    return add(list, is_other ? OTHERS : kind, times, bytes, NULL);
}

/* A named type: one number, two of the same kind, or a number followed by an int, which its size tells. */
static int make_named(MPI_Datatype type, int64_t size, uint8_t differ, struct form_map **list)
{
    int kind = has_long_doubles(type) ? LONG_DOUBLE : NUMBER, times = is_pair(type) ? 2 : 1;
    const int64_t number = sizeof(int);
    if (size == LONG_DOUBLE_BYTES + number || size == (int64_t)sizeof(double) + number ||
        size == (int64_t)sizeof(short) + number) {
        int status = add_numbers(list, kind, 1, size - number, differ);
        return TRY(status, add_numbers(list, NUMBER, 1, number, differ));
    }
    return add_numbers(list, kind, times, size / times, differ);
}

static int make(MPI_Datatype type, uint8_t differ, struct form_map **list)
{
    MPI_Count size = 0;
    struct envelope made;
    int status = real.Type_size_x(type, &size), combiner = combiner_envelope(type, &made);
    if (status != MPI_SUCCESS)
        return status;
    if (combiner == MPI_COMBINER_NAMED)
        return make_named(type, size, differ, list);
    /* Open MPI uses a long double for a Fortran number of more than 15 digits; MPICH has no such type. */
    if (combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX) {
        int64_t times = combiner == MPI_COMBINER_F90_REAL ? 1 : 2, bytes = size / times;
        return add_numbers(list, bytes == LONG_DOUBLE_BYTES ? LONG_DOUBLE : NUMBER, times, bytes, differ);
    }
    if (combiner == MPI_COMBINER_F90_INTEGER)
        return add_numbers(list, NUMBER, 1, size, differ);
    if (combiner < 0 || made.types == 0)
        return add(list, OTHERS, 1, size, NULL);
    return make_derived(type, combiner, &made, size, differ, list);
}

int form_map_make(MPI_Datatype type, uint8_t differ, struct form_map **map)
{
    *map = NULL;
    if (differ == 0 || (combiner_of(type) == MPI_COMBINER_NAMED && !forms_concern(type, differ)))
        return MPI_SUCCESS;
    int status = make(type, differ, map);
    if (status != MPI_SUCCESS || !has_numbers(*map)) {
        form_map_free(*map);
        *map = NULL;
    }
    return status;
}

static void turn_round(unsigned char *number, int64_t bytes)
{
    for (int64_t i = 0; i < bytes / 2; i++) {
        unsigned char byte = number[i];
        number[i] = number[bytes - 1 - i];
        number[bytes - 1 - i] = byte;
    }
}

static void convert(const struct form_map *map, unsigned char *number, uint8_t from, uint8_t to)
{
    uint8_t differ = forms_differ(from, to);
    if (map->kind == LONG_DOUBLE && differ & FORMS_LONG_DOUBLE) {
        if (from & FORMS_BIG_ENDIAN)
            turn_round(number, map->bytes);
        if ((to & FORMS_LONG_DOUBLE) == LONG_DOUBLE_QUAD)
            long_double_to_quad(number);
        else
            long_double_to_x87(number);
        if (to & FORMS_BIG_ENDIAN)
            turn_round(number, map->bytes);
    } else if (differ & FORMS_BIG_ENDIAN) {
        turn_round(number, map->bytes);
    }
}

/* Converts one element, and returns how many bytes of it there are. */
static int64_t walk(const struct form_map *map, char *at, int64_t bytes, uint8_t from, uint8_t to)
{
    char *begin = at, *end = at + bytes;
    for (; map && at < end; map = map->next) {
        if (map->kind == OTHERS) {
            int64_t skipped = map->times * map->bytes;
            at = skipped < end - at ? at + skipped : end;
            continue;
        }
        for (int64_t i = 0; i < map->times && at < end; i++) {
            if (map->kind == PARTS) {
                at += walk(map->parts, at, end - at, from, to);
            } else if (end - at >= map->bytes) {
                convert(map, (unsigned char *)at, from, to);
                at += map->bytes;
            } else {
                at = end;
            }
        }
    }
    return at - begin;
}

void form_map_convert(const struct form_map *map, char *packed, int64_t bytes, uint8_t from, uint8_t to)
{
    for (int64_t done = 0; map && done < bytes;)
        done += walk(map, packed + done, bytes - done, from, to);
}
