/* A blocking connect is interrupted by a signal whose handler makes a connection itself: both succeed. */
#include <arpa/inet.h>
#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static int connect_to(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "10.2.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to);
}

static void on_alarm(int signal)
{
    (void)signal;
    handled = connect_to(1) == 0;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm; /* without SA_RESTART */
    sigaction(SIGALRM, &action, NULL);
    struct itimerval soon = {.it_value = {.tv_usec = 50000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    return connect_to(2) == 0 && handled ? 0 : 1;
}
