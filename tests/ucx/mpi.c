/* Plays an MPI and a UCX of which nothing is left but MPI_Finalize. It waits for its process manager, which
 * answers once the worker has made progress. A timer interrupts it more often than finalize.c polls. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static int manager[2];

int ucp_worker_create(void *context, const void *params, void **worker)
{
    (void)context, (void)params;
    *worker = &manager;
    return 0;
}

unsigned ucp_worker_progress(void *worker)
{
    (void)worker;
    return write(manager[1], "x", 1) == 1;
}

static void on_timer(int signal) { (void)signal; }

int MPI_Finalize(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {0};
    void *worker;
    char byte, number[2] = "0";
    if (ucp_worker_create(NULL, NULL, &worker) || pipe(manager))
        return 1;
    number[0] += manager[0];
    setenv("PMI_FD", number, 1);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    ssize_t got = read(manager[0], &byte, 1);
    setitimer(ITIMER_REAL, &never, NULL);
    return got != 1;
}
