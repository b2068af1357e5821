/* Ends a job whose world has ended, or cannot begin. */
#ifndef CAUSEWAY_WORLD_ENDING_H
#define CAUSEWAY_WORLD_ENDING_H

/* One line for the user, and the end of the site's job. */
_Noreturn void ending_now(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the job where a peer is lost, or `causeway run` says so. Called by progress(). */
void ending_check(void);

/* Called when the rendezvous has something to say. */
void ending_heard(void);

#endif
