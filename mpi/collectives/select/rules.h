/* The user's own choices, which take precedence over the model's. One rule per line, or separated by commas:
 *
 *     operation [low..high] algorithm     # comment
 *
 * for sizes of at least `low` and below `high` bytes. k is 1024 bytes and M 1024 * 1024. Without `high` there
 * is no upper limit; without a range the rule holds for all sizes. The first rule that matches decides. */
#ifndef CAUSEWAY_RULES_H
#define CAUSEWAY_RULES_H

#include "collectives/select/model.h"

#include <stddef.h>

#define MAX_RULES 64

/* `operation` and `algorithm` are enums. All members are 8-byte numbers, as struct settings requires. */
struct rules {
    struct rule {
        int64_t operation, algorithm, low, high;
    } all[MAX_RULES];
    int64_t count;
};

/* Adds the rules in `text`. If one is not understood, adds none and returns false, with "NAME:LINE: error" in
 * `said`. */
int rules_parse(struct rules *rules, const char *text, const char *name, char *said, size_t said_bytes);

/* Adds the rules in a file. `said` is as above. */
int rules_read(struct rules *rules, const char *path, char *said, size_t said_bytes);

/* Writes a rule in the form in which it is read. */
void rule_write(const struct rule *rule, char *text, size_t bytes);

/* Returns the algorithm of the first rule that matches; `otherwise` if none does, or if that algorithm cannot
 * be used here. */
enum algorithm rules_find(const struct rules *rules, const struct layout *layout, enum operation operation,
                          int64_t bytes, enum algorithm otherwise);

#endif
