#define _GNU_SOURCE
#include "common/tasks/coroutine.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Size of a stack. The MPI's functions and the program's reduction operations run on it. Only touched pages
 * take memory. */
#define STACK_BYTES (2 << 20)
/* The maximum number of stacks kept for later coroutines. */
#define MAX_STACKS 16

/* Guards the two variables below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *stacks[MAX_STACKS];
static int stack_count;

static _Thread_local struct coroutine *current __attribute__((tls_model("initial-exec")));

/* A coroutine may resume in a different thread from the one in which it left. So no code may keep the address
 * of `current` across a switch of stacks: these two functions are opaque to the compiler. */
__attribute__((noinline)) struct coroutine *coroutine_current(void)
{
    __asm__ volatile("");
    return current;
}

__attribute__((noinline)) static void set_current(struct coroutine *coroutine)
{
    __asm__ volatile("");
    current = coroutine;
}

static char *take_stack(void)
{
    pthread_mutex_lock(&lock);
    char *stack = stack_count ? stacks[--stack_count] : NULL;
    pthread_mutex_unlock(&lock);
    if (stack)
        return stack;
    stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    /* With this guard page, an overflow ends the program where it happens. */
    mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    return stack;
}

static void leave_stack(char *stack)
{
    pthread_mutex_lock(&lock);
    int is_kept = stack_count < MAX_STACKS;
    if (is_kept)
        stacks[stack_count++] = stack;
    pthread_mutex_unlock(&lock);
    if (!is_kept)
        munmap(stack, STACK_BYTES);
}

/* The function that runs on the stack. */
static void run(void)
{
    struct coroutine *coroutine = coroutine_current();
    coroutine->body(coroutine);
    coroutine->is_over = 1;
    swapcontext(&coroutine->own, &coroutine->back);
}

int coroutine_begin(struct coroutine *coroutine, void (*body)(struct coroutine *))
{
    coroutine->stack = take_stack();
    if (!coroutine->stack)
        return 0;
    coroutine->body = body;
    coroutine->is_over = 0;
    getcontext(&coroutine->own);
    coroutine->own.uc_stack.ss_sp = coroutine->stack;
    coroutine->own.uc_stack.ss_size = STACK_BYTES;
    makecontext(&coroutine->own, run, 0);
    return 1;
}

void coroutine_resume(struct coroutine *coroutine)
{
    set_current(coroutine);
    swapcontext(&coroutine->back, &coroutine->own);
    set_current(NULL);
    if (coroutine->is_over)
        leave_stack(coroutine->stack);
}

void coroutine_leave(void)
{
    struct coroutine *coroutine = coroutine_current();
    swapcontext(&coroutine->own, &coroutine->back);
}

void coroutines_end(void)
{
    while (stack_count)
        munmap(stacks[--stack_count], STACK_BYTES);
}
