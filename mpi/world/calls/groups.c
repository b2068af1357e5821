/* Groups. If one of two groups has processes of other sites, both are treated as lists of numbers in the
 * world. */
#define _GNU_SOURCE
#include "world/handles/groups.h"

#include "common/binding/export.h"
#include "world/calls/check.h"
#include "world/handles/comms.h"

#include <stdlib.h>
#include <string.h>

struct list {
    int size;
    int32_t *numbers;
};

static struct list list_of(MPI_Group group)
{
    struct list list = {0};
    list.numbers = group_list(group, &list.size);
    return list;
}

static int place(const struct list *list, int32_t number)
{
    for (int i = 0; i < list->size; i++)
        if (list->numbers[i] == number)
            return i;
    return -1;
}

/* Errors of groups go to MPI_COMM_WORLD's error handler. */
static int group_error(int status)
{
    if (status != MPI_SUCCESS)
        real.Comm_call_errhandler(handle.comm_world, status);
    return status;
}

EXPORT int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    const struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Comm_group, comm, group);
    NEEDS(on, group);
    return comm_error(on, group_make(on->size, on->numbers, group));
}
BOTH(Comm_group);

EXPORT int MPI_Group_size(MPI_Group group, int *size)
{
    const struct group *found = group_find(group);
    if (!found)
        return PASS(Group_size, group, size);
    if (!size)
        return group_error(MPI_ERR_ARG);
    *size = found->size;
    return MPI_SUCCESS;
}
BOTH(Group_size);

EXPORT int MPI_Group_rank(MPI_Group group, int *rank)
{
    const struct group *found = group_find(group);
    if (!found)
        return PASS(Group_rank, group, rank);
    if (!rank)
        return group_error(MPI_ERR_ARG);
    struct list list = {found->size, found->numbers};
    int at = place(&list, (int32_t)ours.world.me);
    *rank = at < 0 ? MPI_UNDEFINED : at;
    return MPI_SUCCESS;
}
BOTH(Group_rank);

EXPORT int MPI_Group_free(MPI_Group *group)
{
    struct group *found = ours.is_on && group ? group_find(*group) : NULL;
    if (!found)
        return PASS(Group_free, group);
    *group = handle.group_null;
    return group_free(found);
}
BOTH(Group_free);

/* Whether the MPI handles the call. It refuses MPI_GROUP_NULL. */
static int is_native(MPI_Group a, MPI_Group b)
{
    return (!group_find(a) && !group_find(b)) || a == handle.group_null || b == handle.group_null;
}

EXPORT int MPI_Group_translate_ranks(MPI_Group from, int count, const int ranks[], MPI_Group to,
                                     int translated[])
{
    if (is_native(from, to))
        return PASS(Group_translate_ranks, from, count, ranks, to, translated);
    if (count < 0 || (count > 0 && (!ranks || !translated)))
        return group_error(MPI_ERR_ARG);
    struct list a = list_of(from), b = list_of(to);
    int status = a.numbers && b.numbers ? MPI_SUCCESS : MPI_ERR_GROUP;
    for (int i = 0; i < count && status == MPI_SUCCESS; i++) {
        if (ranks[i] != MPI_PROC_NULL && (ranks[i] < 0 || ranks[i] >= a.size)) {
            status = MPI_ERR_RANK;
        } else {
            int at = ranks[i] == MPI_PROC_NULL ? -1 : place(&b, a.numbers[ranks[i]]);
            translated[i] = ranks[i] == MPI_PROC_NULL ? MPI_PROC_NULL : at < 0 ? MPI_UNDEFINED : at;
        }
    }
    free(a.numbers);
    free(b.numbers);
    return group_error(status);
}
BOTH(Group_translate_ranks);

EXPORT int MPI_Group_compare(MPI_Group left, MPI_Group right, int *result)
{
    if (is_native(left, right))
        return PASS(Group_compare, left, right, result);
    if (!result)
        return group_error(MPI_ERR_ARG);
    struct list a = list_of(left), b = list_of(right);
    int same = a.size == b.size, similar = same;
    for (int i = 0; i < a.size && similar; i++) {
        same = same && a.numbers[i] == b.numbers[i];
        similar = place(&b, a.numbers[i]) >= 0;
    }
    *result = same ? MPI_IDENT : similar ? MPI_SIMILAR : MPI_UNEQUAL;
    free(a.numbers);
    free(b.numbers);
    return MPI_SUCCESS;
}
BOTH(Group_compare);

/* Makes a group of the chosen members of a list, and frees both. */
static int make(struct list *list, int32_t *chosen, int count, MPI_Group *made)
{
    int status = chosen && list->numbers ? group_make(count, chosen, made) : MPI_ERR_NO_MEM;
    if (status == MPI_SUCCESS && count == 0)
        *made = handle.group_empty;
    free(chosen);
    free(list->numbers);
    return status;
}

/* Whether `count` ranks are valid in a group. */
static int are_ranks(MPI_Group group, int count, const int ranks[])
{
    int size = group_find(group)->size;
    if (count < 0 || (count > 0 && !ranks))
        return 0;
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= size)
            return 0;
    return 1;
}

static int include(MPI_Group group, int count, const int ranks[], MPI_Group *made)
{
    struct list list = list_of(group);
    int32_t *chosen = malloc((size_t)(count > 0 ? count : 1) * sizeof *chosen);
    for (int i = 0; i < count && chosen && list.numbers; i++)
        chosen[i] = list.numbers[ranks[i]];
    return make(&list, chosen, count, made);
}

static int exclude(MPI_Group group, int count, const int ranks[], MPI_Group *made)
{
    struct list list = list_of(group);
    int32_t *chosen = malloc((size_t)(list.size ? list.size : 1) * sizeof *chosen);
    int left = 0;
    for (int i = 0; i < list.size && chosen; i++) {
        int k = 0;
        while (k < count && ranks[k] != i)
            k++;
        if (k == count)
            chosen[left++] = list.numbers[i];
    }
    return make(&list, chosen, left, made);
}

EXPORT int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *made)
{
    if (!group_find(group))
        return PASS(Group_incl, group, count, ranks, made);
    if (!made || !are_ranks(group, count, ranks))
        return group_error(made ? MPI_ERR_RANK : MPI_ERR_ARG);
    return group_error(include(group, count, ranks, made));
}
BOTH(Group_incl);

EXPORT int MPI_Group_excl(MPI_Group group, int count, const int ranks[], MPI_Group *made)
{
    if (!group_find(group))
        return PASS(Group_excl, group, count, ranks, made);
    if (!made || !are_ranks(group, count, ranks))
        return group_error(made ? MPI_ERR_RANK : MPI_ERR_ARG);
    return group_error(exclude(group, count, ranks, made));
}
BOTH(Group_excl);

/* Lists the ranks of ranges (first, last, stride). Returns how many there are, or -1 if a range is
 * invalid. */
static int expand(const struct group *group, int count, int ranges[][3], int **ranks)
{
    int many = 0;
    *ranks = malloc((size_t)(group->size ? group->size : 1) * sizeof **ranks);
    for (int i = 0; i < count && *ranks; i++) {
        int first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
        if (stride == 0 || first < 0 || first >= group->size)
            return -1;
        for (int at = first; stride > 0 ? at <= last : at >= last; at += stride) {
            if (many == group->size || at < 0 || at >= group->size)
                return -1;
            (*ranks)[many++] = at;
        }
    }
    return *ranks ? many : -1;
}

EXPORT int MPI_Group_range_incl(MPI_Group group, int count, int ranges[][3], MPI_Group *made)
{
    const struct group *found = group_find(group);
    if (!found)
        return PASS(Group_range_incl, group, count, ranges, made);
    if (!made || count < 0 || (count > 0 && !ranges))
        return group_error(MPI_ERR_ARG);
    int *ranks, many = expand(found, count, ranges, &ranks);
    int status = many < 0 || !are_ranks(group, many, ranks) ? MPI_ERR_ARG : include(group, many, ranks, made);
    free(ranks);
    return group_error(status);
}
BOTH(Group_range_incl);

EXPORT int MPI_Group_range_excl(MPI_Group group, int count, int ranges[][3], MPI_Group *made)
{
    const struct group *found = group_find(group);
    if (!found)
        return PASS(Group_range_excl, group, count, ranges, made);
    if (!made || count < 0 || (count > 0 && !ranges))
        return group_error(MPI_ERR_ARG);
    int *ranks, many = expand(found, count, ranges, &ranks);
    int status = many < 0 || !are_ranks(group, many, ranks) ? MPI_ERR_ARG : exclude(group, many, ranks, made);
    free(ranks);
    return group_error(status);
}
BOTH(Group_range_excl);

/* Makes a group of the first group's members that are in the second (keep_common) or are not (keep_own);
 * then, for a union (add), the other members of the second. */
static int combine(MPI_Group first, MPI_Group second, int keep_common, int keep_own, int add, MPI_Group *made)
{
    if (!made)
        return group_error(MPI_ERR_ARG);
    struct list a = list_of(first), b = list_of(second);
    int32_t *chosen = malloc((size_t)(a.size + b.size + 1) * sizeof *chosen);
    int count = 0;
    for (int i = 0; i < a.size && chosen && a.numbers && b.numbers; i++)
        if (place(&b, a.numbers[i]) >= 0 ? keep_common : keep_own)
            chosen[count++] = a.numbers[i];
    for (int i = 0; i < b.size && add && chosen && a.numbers && b.numbers; i++)
        if (place(&a, b.numbers[i]) < 0)
            chosen[count++] = b.numbers[i];
    free(b.numbers);
    return make(&a, chosen, count, made);
}

EXPORT int MPI_Group_union(MPI_Group first, MPI_Group second, MPI_Group *made)
{
    return is_native(first, second) ? PASS(Group_union, first, second, made)
                                    : combine(first, second, 1, 1, 1, made);
}
BOTH(Group_union);

EXPORT int MPI_Group_intersection(MPI_Group first, MPI_Group second, MPI_Group *made)
{
    return is_native(first, second) ? PASS(Group_intersection, first, second, made)
                                    : combine(first, second, 1, 0, 0, made);
}
BOTH(Group_intersection);

EXPORT int MPI_Group_difference(MPI_Group first, MPI_Group second, MPI_Group *made)
{
    return is_native(first, second) ? PASS(Group_difference, first, second, made)
                                    : combine(first, second, 0, 1, 0, made);
}
BOTH(Group_difference);
