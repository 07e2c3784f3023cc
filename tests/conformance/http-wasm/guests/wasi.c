// A command with the C library: what `main` and `handle_request` find in their environment, as lines of standard output.
//
//   clang --target=wasm32-wasi --sysroot=/usr -O2 -Wl,--strip-all -o wasi-c.wasm wasi.c
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int calls;

static long long read_ms(clockid_t clock) {
  struct timespec now;
  if (clock_gettime(clock, &now) != 0) return -1;
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void report(const char *where) {
  unsigned char random[2][16];
  getentropy(random[0], 16);
  getentropy(random[1], 16);
  int same = 1;
  for (int i = 0; i < 16; i++) same &= random[0][i] == random[1][i];
  printf("%s: random %s, PATH %s\n", where, same ? "same" : "differs", getenv("PATH") == NULL ? "unset" : "set");
  printf("%s: time %s\n", where, read_ms(CLOCK_REALTIME) > 1700000000000LL ? "now" : "wrong");
  long long before = read_ms(CLOCK_MONOTONIC);
  struct timespec pause = {3600, 5000000};
  int slept = nanosleep(&pause, NULL);
  long long passed = read_ms(CLOCK_MONOTONIC) - before;
  printf("%s: slept %d, %s\n", where, slept, passed >= 3600005 && passed < 3660000 ? "an hour passed" : "no hour passed");
  struct pollfd out = {.fd = 1, .events = POLLOUT};
  printf("%s: poll %d, yield %d\n", where, poll(&out, 1, 1000), sched_yield());
  errno = 0;
  int file = open("/etc/passwd", O_RDONLY);
  printf("%s: open %d, errno %s\n", where, file, errno == 0 ? "0" : "set");
  struct stat status;
  char byte;
  printf("%s: stat %d, stdin %d, seek %d\n", where, fstat(1, &status), (int)read(0, &byte, 1), (int)lseek(1, 0, SEEK_CUR));
  fprintf(stderr, "%s: standard ", where);
  fprintf(stderr, "error");
  fflush(NULL);
}

__attribute__((export_name("handle_request"))) unsigned long long handle_request(void) {
  report(calls++ == 0 ? "first request" : "later request");
  return 1;
}

__attribute__((export_name("handle_response"))) void handle_response(unsigned context, unsigned is_error) {
  (void)is_error;
  if (context == 9) exit(0);
}

int main(int argc, char **argv) {
  (void)argv;
  printf("main: %d arguments\n", argc);
  report("main");
  return 0;
}
