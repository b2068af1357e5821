/* Operations that are done, and how they are reported. */
#include "world/engine/state.h"

#include <stdlib.h>

void message_free(struct message *message)
{
    free(message->held);
    free(message);
}

static void tell(struct engine *engine, struct operation *operation)
{
    operation->next = NULL;
    *engine->done_end = operation;
    engine->done_end = &operation->next;
}

void operation_finish(struct engine *engine, struct operation *operation)
{
    operation->state = OPERATION_DONE;
    if (operation->is_nobodys)
        free(operation);
    else if (operation->is_told)
        tell(engine, operation);
}

struct operation *engine_take_done(struct engine *engine)
{
    struct operation *done = engine->done;
    if (!done)
        return NULL;
    engine->done = done->next;
    if (!engine->done)
        engine->done_end = &engine->done;
    return done;
}
