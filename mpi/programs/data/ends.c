#include "ends.h"

#include <stdlib.h>

/* A type map of more numbers than this tests nothing new, and takes time. */
#define MOST_PIECES 2048

/* Finds a divisor of `words` for which the map stays small. */
static int words_of_an_instance(int words, int pieces, struct random *random)
{
    int found[MOST_PIECES] = {1}, count = 0;
    for (int divisor = 1; divisor <= words && divisor * pieces <= MOST_PIECES; divisor++)
        if (words % divisor == 0)
            found[count++] = divisor;
    return found[random_below(random, count)];
}

void end_make(struct end *end, int word, int words, enum layout_kind kind, struct random *random)
{
    end->word = words_make(word, random);
    int each = words_of_an_instance(words, end->word.count, random), inner = 1;
    enum layout_kind first = LAYOUT_PLAIN;
    if (kind == LAYOUT_KINDS) {
        first = (enum layout_kind)random_below(random, LAYOUT_KINDS);
        kind = (enum layout_kind)random_below(random, LAYOUT_KINDS);
        inner = first == LAYOUT_PLAIN ? 1 : random_divisor(random, each);
    }
    end->inner = layout_make(first, &end->word, inner, random);
    layout_commit(&end->inner);
    end->layout = layout_make(kind, &end->inner, each / inner, random);
    layout_commit(&end->layout);
    end->instances = words / end->layout.words;
}

void end_free(struct end *end)
{
    layout_free(&end->layout);
    layout_free(&end->inner);
    layout_free(&end->word);
    end->instances = 0;
}
