/* Ends a job whose world has ended, or cannot begin. */
#ifndef CAUSEWAY_WORLD_ENDING_H
#define CAUSEWAY_WORLD_ENDING_H

/* Prints one line for the user, and ends the site's job. */
_Noreturn void ending_now(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the job if a peer has been lost. Called by progress(). */
void ending_check(void);

/* Called when something has arrived from the rendezvous: ends the job if `causeway run` says so, or has
 * ended. */
void ending_heard(void);

#endif
