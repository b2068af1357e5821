/* Coroutines: functions with a stack of their own. They leave it where they would wait, and return to it when
 * they are resumed. This file does not depend on what uses them. */
#ifndef CAUSEWAY_COROUTINE_H
#define CAUSEWAY_COROUTINE_H

#include <ucontext.h>

struct coroutine {
    void (*body)(struct coroutine *);
    int is_over;
    char *stack;
    /* Where the coroutine continues, and where the code that resumed it does. */
    ucontext_t own, back;
};

/* Gives a coroutine its stack. Returns false if memory is exhausted; then nothing has begun. */
int coroutine_begin(struct coroutine *coroutine, void (*body)(struct coroutine *));
/* Switches to the coroutine until it leaves or ends. One that has ended must not be resumed: its stack is
 * freed. */
void coroutine_resume(struct coroutine *coroutine);

/* The coroutine that runs in this thread; NULL outside of any. */
struct coroutine *coroutine_current(void);
/* Leaves the current coroutine, and switches back to the code that resumed it. It may continue in another
 * thread. */
void coroutine_leave(void);

/* Frees the stacks that are kept for later coroutines. */
void coroutines_end(void);

#endif
