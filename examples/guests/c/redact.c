// Replaces e-mail addresses by `[e-mail]`, as assembly/redact.ts and rust/redact.rs do: the same bytes for the same object. A command: the
// object on standard input, the result on standard output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *text;
static size_t end;

static int is_letter(unsigned char byte) {
  unsigned char lower = byte | 32;
  return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
}

static int is_local(unsigned char byte) {
  return is_letter(byte) || byte == '.' || byte == '_' || byte == '%' || byte == '+' || byte == '-';
}

static int is_host(unsigned char byte) { return is_letter(byte) || byte == '.' || byte == '-'; }

// The end of the address that begins here; the place itself if there is none.
static size_t find_address(size_t from) {
  size_t at = from, dot = 0;
  while (at < end && is_local(text[at])) at++;
  if (at == from || at == end || text[at] != '@') return from;
  size_t host = ++at;
  while (at < end && is_host(text[at])) {
    if (text[at] == '.' && at + 1 < end && is_host(text[at + 1])) dot = at;
    at++;
  }
  if (dot <= host) return from;
  // A sentence may end behind the address.
  while (text[at - 1] == '.') at--;
  return at;
}

static void read_all(void) {
  size_t room = 65536, got;
  text = malloc(room);
  while (text != NULL && (got = fread(text + end, 1, room - end, stdin)) > 0) {
    end += got;
    if (end == room) text = realloc(text, room *= 2);
  }
  if (text != NULL) return;
  fputs("the object is too large\n", stderr);
  exit(1);
}

int main(void) {
  read_all();
  for (size_t at = 0; at < end;) {
    size_t stop = find_address(at);
    if (stop > at) {
      fputs("[e-mail]", stdout);
      at = stop;
      continue;
    }
    // The rest of a word that is no address is copied as a whole, so that its end is not taken for one.
    do {
      putchar(text[at++]);
    } while (at < end && is_local(text[at - 1]) && is_local(text[at]));
  }
  return fflush(stdout) != 0;
}
