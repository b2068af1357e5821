/* Tells Fortran programs how many messages this rank has sent between sites by way of the library; none
 * without it. In a world of sites with own MPIs nobody counts yet: each call stands for one. */
#include "native.h"

#include <stdint.h>
#include <stdlib.h>

void crossed_(int *messages)
{
    static int calls;
    int64_t crossings[2] = {0, 0};
    void (*read_crossings)(int64_t *) = (void (*)(int64_t *))dlsym(RTLD_DEFAULT, CROSSINGS);
    if (read_crossings)
        read_crossings(crossings);
    else if (getenv("CAUSEWAY_WORLD"))
        crossings[0] = ++calls;
    *messages = (int)crossings[0];
}
