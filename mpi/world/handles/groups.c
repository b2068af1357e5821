#include "world/handles/groups.h"

#include "world/engine/numbers.h"
#include "world/handles/key.h"

#include <stdlib.h>
#include <string.h>

static struct numbers table;

struct group *group_find(MPI_Group name) { return table.used ? numbers_find(&table, KEY(name)) : NULL; }

int32_t *group_list(MPI_Group group, int *size)
{
    struct group *found = group_find(group);
    if (!found && real.Group_size(group, size) != MPI_SUCCESS)
        return NULL;
    if (found)
        *size = found->size;
    size_t bytes = (size_t)(*size ? *size : 1) * sizeof(int32_t);
    int32_t *numbers = malloc(bytes);
    int *ranks = malloc(2 * bytes);
    if (numbers && ranks && found) {
        memcpy(numbers, found->numbers, (size_t)*size * sizeof *numbers);
    } else if (numbers && ranks) {
        for (int i = 0; i < *size; i++)
            ranks[i] = i;
        real.Group_translate_ranks(group, *size, ranks, ours.here, ranks + *size);
        for (int i = 0; i < *size; i++)
            numbers[i] =
                ranks[*size + i] == MPI_UNDEFINED ? -1 : ranks[*size + i] + (int32_t)ours.world.first_here;
    } else {
        free(numbers);
        numbers = NULL;
    }
    free(ranks);
    return numbers;
}

int group_make_here(int size, const int32_t *numbers, MPI_Group *group)
{
    int *native = malloc((size_t)(size ? size : 1) * sizeof *native), count = 0;
    if (!native)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < size; i++)
        if (numbers[i] >= 0 && world_is_here(&ours.world, (uint32_t)numbers[i]))
            native[count++] = numbers[i] - (int32_t)ours.world.first_here;
    int status = real.Group_incl(ours.here, count, native, group);
    free(native);
    return status;
}

int group_make(int size, const int32_t *numbers, MPI_Group *group)
{
    int are_here = 1;
    for (int i = 0; i < size; i++)
        are_here = are_here && numbers[i] >= 0 && world_is_here(&ours.world, (uint32_t)numbers[i]);
    if (are_here)
        return group_make_here(size, numbers, group);
    struct group *made = malloc(sizeof *made);
    int32_t *copy = malloc((size_t)size * sizeof *copy);
    int first = 0, status = made && copy ? real.Group_incl(ours.here, 1, &first, group) : MPI_ERR_NO_MEM;
    if (status == MPI_SUCCESS) {
        memcpy(copy, numbers, (size_t)size * sizeof *copy);
        *made = (struct group){*group, size, copy};
        status = numbers_add(&table, KEY(*group), made) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    }
    if (status != MPI_SUCCESS) {
        free(made);
        free(copy);
    }
    return status;
}

int group_free(struct group *group)
{
    MPI_Group name = group->name;
    numbers_remove(&table, KEY(name));
    free(group->numbers);
    free(group);
    return real.Group_free(&name);
}
