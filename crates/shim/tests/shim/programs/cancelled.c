/* A thread blocked in accept() is cancelled, as without the shim. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener, entered[2], cleaned;

static void clean(void *unused)
{
    (void)unused;
    cleaned = 1;
}

static void *serve(void *unused)
{
    pthread_cleanup_push(clean, NULL);
    (void)!write(entered[1], "x", 1);
    accept(listener, NULL, NULL);
    pthread_cleanup_pop(0);
    return unused;
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char byte;
    void *result;
    pthread_t thread;
    inet_pton(AF_INET, "10.1.0.1", &at.sin_addr);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 5) || pipe(entered))
        return 2;
    pthread_create(&thread, NULL, serve, NULL);
    (void)!read(entered[0], &byte, 1);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED && cleaned ? 0 : 1;
}
