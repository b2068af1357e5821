#include "collectives/select/rules.h"

#include "collectives/select/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Larger files are refused. */
#define MAX_FILE_BYTES (64 * 1024)

#define WORD_BYTES 64

/* Where to write an error message, and the name and line with which it begins. */
struct complaint {
    const char *name;
    int line;
    char *text;
    size_t bytes;
};

static int complain(const struct complaint *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int complain(const struct complaint *to, const char *format, ...)
{
    va_list arguments;
    int length = snprintf(to->text, to->bytes, "%s:%d: ", to->name, to->line);
    va_start(arguments, format);
    if (length > 0 && (size_t)length < to->bytes)
        vsnprintf(to->text + length, to->bytes - length, format, arguments);
    va_end(arguments);
    return 0;
}

static int find(const char *word, const char *const names[], int count)
{
    for (int i = 0; i < count; i++)
        if (names[i] && strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

/* Writes "a, b, c": all names, or, of the algorithms, those that `of` has. */
static const char *list(char *text, size_t bytes, const char *const names[], int count, enum operation of)
{
    size_t length = 0;
    for (int i = 0; i < count && length < bytes; i++)
        if (names != algorithm_names || model_has(of, (enum algorithm)i))
            length += snprintf(text + length, bytes - length, "%s%s", length ? ", " : "", names[i]);
    return text;
}

/* Reads a number of bytes and advances *at past it. Returns -1 if there is none. */
static int64_t size_at(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9')
        return -1;
    errno = 0;
    int64_t size = strtoll(*at, &end, 10), unit = *end == 'k' ? 1024 : *end == 'M' ? 1024 * 1024 : 1;
    *at = unit > 1 ? end + 1 : end;
    return errno || size > INT64_MAX / unit ? -1 : size * unit;
}

static int range(const char *word, struct rule *rule)
{
    rule->low = size_at(&word);
    if (rule->low < 0 || strncmp(word, "..", 2) != 0)
        return 0;
    word += 2;
    if (!*word)
        return 1;
    rule->high = size_at(&word);
    return rule->high > rule->low && !*word;
}

/* Reads one rule. A blank text is valid, too, and adds no rule. */
static int parse_one(struct rules *rules, const char *text, const struct complaint *to)
{
    char words[4][WORD_BYTES] = {"", "", "", ""}, names[256];
    struct rule rule = {.high = INT64_MAX};
    int count = sscanf(text, "%63s %63s %63s %63s", words[0], words[1], words[2], words[3]);
    if (count <= 0)
        return 1;
    int operation = find(words[0], operation_names, OPERATIONS);
    if (operation < 0)
        return complain(to, "there is no operation \"%s\"; there are: %s", words[0],
                        list(names, sizeof names, operation_names, OPERATIONS, OF_BARRIER));
    rule.operation = (enum operation)operation;
    if (count < 2 || count > 3)
        return complain(to, "a rule is: operation [low..high] algorithm, as in \"%s 0..64k native\"",
                        words[0]);
    if (count == 3 && !range(words[1], &rule))
        return complain(to, "\"%s\" is no range of sizes; say 0..65536, 8k..1M or 64k..", words[1]);
    int algorithm = find(words[count - 1], algorithm_names, ALGORITHMS);
    if (algorithm < 0 || !model_has(rule.operation, (enum algorithm)algorithm))
        return complain(to, "%s has no algorithm \"%s\"; it has: %s", words[0], words[count - 1],
                        list(names, sizeof names, algorithm_names, ALGORITHMS, rule.operation));
    rule.algorithm = (enum algorithm)algorithm;
    if (rules->count == MAX_RULES)
        return complain(to, "more than %d rules", MAX_RULES);
    rules->all[rules->count++] = rule;
    return 1;
}

int rules_parse(struct rules *rules, const char *text, const char *name, char *said, size_t said_bytes)
{
    struct rules more = *rules;
    struct complaint to = {name, 1, said, said_bytes};
    char one[4 * WORD_BYTES];
    while (*text) {
        size_t length = strcspn(text, ",#\n");
        if (length >= sizeof one)
            return complain(&to, "a rule is no longer than %zu characters", sizeof one - 1);
        memcpy(one, text, length);
        one[length] = 0;
        if (!parse_one(&more, one, &to))
            return 0;
        text += length;
        if (*text == '#')
            text += strcspn(text, "\n");
        to.line += *text == '\n';
        text += *text != 0;
    }
    *rules = more;
    return 1;
}

int rules_read(struct rules *rules, const char *path, char *said, size_t said_bytes)
{
    FILE *file = fopen(path, "re");
    char *text = file ? calloc(1, MAX_FILE_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, MAX_FILE_BYTES + 1, file) : 0;
    int right = text && !ferror(file) && length <= MAX_FILE_BYTES;
    if (!right)
        snprintf(said, said_bytes, "%s: %s", path,
                 length > MAX_FILE_BYTES ? "larger than 64 kB" : strerror(errno));
    else
        text[length] = 0;
    right = right && rules_parse(rules, text, path, said, said_bytes);
    free(text);
    if (file)
        fclose(file);
    return right;
}

void rule_write(const struct rule *rule, char *text, size_t bytes)
{
    int length = snprintf(text, bytes, "%s %" PRId64 "..", operation_names[rule->operation], rule->low);
    if (rule->high < INT64_MAX)
        length += snprintf(text + length, bytes - length, "%" PRId64, rule->high);
    snprintf(text + length, bytes - length, " %s", algorithm_names[rule->algorithm]);
}

enum algorithm rules_find(const struct rules *rules, const struct layout *layout, enum operation operation,
                          int64_t bytes, enum algorithm otherwise)
{
    for (int i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->all[i];
        if (rule->operation == operation && bytes >= rule->low && bytes < rule->high)
            return model_fits(layout, operation, rule->algorithm, bytes) ? rule->algorithm : otherwise;
    }
    return otherwise;
}
