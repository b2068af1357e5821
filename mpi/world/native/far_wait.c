#include "world/native/far_wait.h"

#include "world/native/progress.h"

static int is_done(void *of) { return far_is_done(of); }

int far_wait(struct far *far)
{
    progress_until(is_done, far, !far->operation.may_be_native);
    return far_finish(far);
}
