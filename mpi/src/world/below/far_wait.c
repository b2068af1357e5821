#include "world/below/far_wait.h"

#include "world/below/look.h"

int far_wait(struct far *far)
{
    struct pace pace = {.is_far = !far->operation.may_be_here};
    while (!far_is_done(far))
        look_pause(&pace);
    return far_finish(far);
}
