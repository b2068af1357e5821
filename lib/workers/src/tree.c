#include "tree.h"

#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct workers_tree *workers_tree_new(int ranks)
{
    struct workers_tree *tree = workers_new(sizeof *tree);
    tree->ranks = ranks;
    tree->colors = workers_new(sizeof(int) * ranks * WORKERS_LEVELS);
    tree->parents = workers_new(sizeof(int) * ranks);
    workers_tree_grow(tree, 1);
    return tree;
}

void workers_tree_free(struct workers_tree *tree)
{
    if (!tree)
        return;
    free(tree->colors);
    free(tree->parents);
    free(tree);
}

const char *workers_tree_read(struct workers_tree *tree, const char *groups)
{
    static char wrong[200];
    int *colors = workers_new(2 * sizeof(int) * tree->ranks), rank = 0, group = 0, part = 0, is_wrong = 0;
    for (const char *at = groups; !is_wrong; part++) {
        char *end;
        errno = 0;
        long count = strtol(at, &end, 10);
        is_wrong = end == at || errno || count <= 0 || count > tree->ranks - rank || !strchr(",+", *end);
        if (is_wrong && end != at && count == 0)
            snprintf(wrong, sizeof wrong, "groups \"%.80s\": group %d is empty", groups, group);
        else if (is_wrong && end != at && count > tree->ranks - rank)
            snprintf(wrong, sizeof wrong, "groups \"%.80s\" have more ranks than the communicator's %d",
                     groups, tree->ranks);
        else if (is_wrong)
            snprintf(wrong, sizeof wrong, "groups \"%.80s\" are not numbers of ranks, as in 4,4 or 2+2,4",
                     groups);
        for (; !is_wrong && count > 0; count--, rank++) {
            colors[rank] = group;
            colors[tree->ranks + rank] = part;
        }
        group += *end == ',';
        at = end + 1;
        if (!*end)
            break;
    }
    if (!is_wrong && rank < tree->ranks) {
        snprintf(wrong, sizeof wrong, "groups \"%.80s\" have %d ranks, the communicator has %d", groups, rank,
                 tree->ranks);
        is_wrong = 1;
    }
    if (!is_wrong) {
        workers_tree_level(tree, colors);
        if (strchr(groups, '+'))
            workers_tree_level(tree, colors + tree->ranks);
    }
    free(colors);
    return is_wrong ? wrong : NULL;
}

void workers_tree_level(struct workers_tree *tree, const int *colors)
{
    if (tree->levels < WORKERS_LEVELS)
        memcpy(tree->colors + tree->levels++ * tree->ranks, colors, sizeof(int) * tree->ranks);
}

/* The lowest rank of a rank's group at a level; level -1 is all. */
static int boss_at(const struct workers_tree *tree, int rank, int level)
{
    for (int other = 0; other < rank; other++) {
        int is_same = 1;
        for (int i = 0; i <= level; i++)
            is_same &= tree->colors[i * tree->ranks + other] == tree->colors[i * tree->ranks + rank];
        if (is_same)
            return other;
    }
    return rank;
}

void workers_tree_grow(struct workers_tree *tree, int is_flat)
{
    for (int rank = 0; rank < tree->ranks; rank++) {
        int level = is_flat ? -1 : tree->levels - 1, boss = boss_at(tree, rank, level);
        while (boss == rank && level >= 0)
            boss = boss_at(tree, rank, --level);
        tree->parents[rank] = boss == rank ? -1 : boss;
    }
}

int workers_tree_groups(const struct workers_tree *tree)
{
    int groups = 0;
    for (int rank = 0; rank < tree->ranks && tree->levels; rank++)
        groups += boss_at(tree, rank, 0) == rank;
    return tree->levels ? groups : 1;
}
