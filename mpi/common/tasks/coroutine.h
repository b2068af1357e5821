/* Coroutines: functions with a stack of their own, which they leave where they would wait and come back to
 * when they are resumed. They know nothing of what they are used for. */
#ifndef CAUSEWAY_COROUTINE_H
#define CAUSEWAY_COROUTINE_H

#include <ucontext.h>

struct coroutine {
    void (*body)(struct coroutine *);
    int is_over;
    char *stack;
    /* Where it goes on, and where the one who resumed it does. */
    ucontext_t own, back;
};

/* Gives a coroutine its stack. False where there is no memory; nothing has begun then. */
int coroutine_begin(struct coroutine *coroutine, void (*body)(struct coroutine *));
/* Switches to it, until it leaves or is over. One that is over may be resumed no more: its stack is freed. */
void coroutine_resume(struct coroutine *coroutine);

/* The one that runs in this thread; NULL outside of any. */
struct coroutine *coroutine_current(void);
/* Switches back to who resumed the current one. It may go on in another thread. */
void coroutine_leave(void);

/* Frees the stacks that are kept for later ones. */
void coroutines_end(void);

#endif
