/* Tests how a text begins. */
#ifndef CAUSEWAY_TEXT_H
#define CAUSEWAY_TEXT_H

#include <stddef.h>
#include <string.h>

static inline int begins_with_any(const char *text, const char *const *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, all[i], strlen(all[i])) == 0)
            return 1;
    return 0;
}
#define BEGINS_WITH_ANY(text, all) begins_with_any(text, all, sizeof all / sizeof *all)

#endif
