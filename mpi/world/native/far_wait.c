#include "world/native/far_wait.h"

#include "world/native/look.h"

static int is_done(void *of) { return far_is_done(of); }

int far_wait(struct far *far)
{
    look_until(is_done, far, !far->operation.may_be_here);
    return far_finish(far);
}
