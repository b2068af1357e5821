/* Which rank is whose boss. Groups lie in groups: colours of each rank at each level say which. The boss of a
 * group is its lowest rank, so rank 0 is above all. Pure. */
#ifndef CAUSEWAY_WORKERS_TREE_H
#define CAUSEWAY_WORKERS_TREE_H

/* Three levels of groups are enough for sites, hosts of a site, and one more. */
#define WORKERS_LEVELS 3

struct workers_tree {
    int ranks, levels;
    /* colors[level * ranks + rank]; two ranks are in one group at a level if their colours are alike there
     * and at all levels before. */
    int *colors;
    /* The boss of each rank; -1 of rank 0. */
    int *parents;
};

/* One group of all, until colours are set. */
struct workers_tree *workers_tree_new(int ranks);
void workers_tree_free(struct workers_tree *tree);

/* Reads "4,4" or "2+2,4" as colours. Returns NULL, or the words of what is wrong. */
const char *workers_tree_read(struct workers_tree *tree, const char *groups);

/* Adds a level; `colors` has one of each rank. Does nothing when there are WORKERS_LEVELS. */
void workers_tree_level(struct workers_tree *tree, const int *colors);

/* Finds the bosses, by all levels or with rank 0 alone. */
void workers_tree_grow(struct workers_tree *tree, int is_flat);

/* How many groups there are at the first level. */
int workers_tree_groups(const struct workers_tree *tree);

#endif
