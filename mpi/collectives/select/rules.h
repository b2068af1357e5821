/* The user's own choices, which go before the model's. One rule a line, or between commas:
 *
 *     operation [low..high] algorithm     # comment
 *
 * for sizes of at least `low` and below `high` bytes (k and M: 1024 and 1024 * 1024 of them; without `high`
 * all from `low` on; without both all). The first that fits decides. */
#ifndef CAUSEWAY_RULES_H
#define CAUSEWAY_RULES_H

#include "collectives/select/model.h"

#include <stddef.h>

#define MAX_RULES 64

/* An enum operation and an enum algorithm, and sizes. All are numbers of 8 bytes, as struct settings has
 * them. */
struct rules {
    struct rule {
        int64_t operation, algorithm, low, high;
    } all[MAX_RULES];
    int64_t count;
};

/* Adds the rules of a text. False, with "NAME:LINE: what is wrong" in `said`, where one is not understood;
 * then none is added. */
int rules_parse(struct rules *rules, const char *text, const char *name, char *said, size_t said_bytes);

/* Adds the rules of a file. `said` is as above. */
int rules_read(struct rules *rules, const char *path, char *said, size_t said_bytes);

/* Writes a rule as it is read. */
void rule_write(const struct rule *rule, char *text, size_t bytes);

/* Returns what the first rule that fits says; `otherwise` where none does, or where its algorithm cannot be
 * used here. */
enum algorithm rules_find(const struct rules *rules, const struct layout *layout, enum operation operation,
                          int64_t bytes, enum algorithm otherwise);

#endif
