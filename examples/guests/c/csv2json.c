// CSV on standard input to JSON lines on standard output. The first line has the names of the columns.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 256
#define FIELD_MAX 65536

static char *names[COLUMNS_MAX];
static int columns = 0;
static char field[FIELD_MAX];

static void write_text(const char *text) {
  putchar('"');
  for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
    if (*at == '"' || *at == '\\') printf("\\%c", *at);
    else if (*at < 0x20) printf("\\u%04x", *at);
    else putchar(*at);
  }
  putchar('"');
}

// Reads one field into `field`. Returns the character behind it: a comma, a newline or EOF.
static int read_field(void) {
  int length = 0, quoted = 0, next = getchar();
  if (next == '"') {
    quoted = 1;
    next = getchar();
  }
  while (next != EOF) {
    if (quoted && next == '"') {
      next = getchar();
      if (next != '"') {
        quoted = 0;
        continue;
      }
    } else if (!quoted && (next == ',' || next == '\n')) break;
    if (!quoted && next == '\r') {
      next = getchar();
      continue;
    }
    if (length == FIELD_MAX - 1) {
      fprintf(stderr, "a field has more than %d bytes\n", FIELD_MAX - 1);
      exit(2);
    }
    field[length++] = (char)next;
    next = getchar();
  }
  field[length] = 0;
  return next;
}

int main(void) {
  int end;
  do {
    end = read_field();
    if (columns == COLUMNS_MAX) {
      fprintf(stderr, "there are more than %d columns\n", COLUMNS_MAX);
      return 2;
    }
    names[columns++] = strdup(field);
  } while (end == ',');
  while (end != EOF) {
    int column = 0;
    do {
      end = read_field();
      if (column == 0 && field[0] == 0 && end != ',') break;
      putchar(column == 0 ? '{' : ',');
      write_text(column < columns ? names[column] : "");
      putchar(':');
      write_text(field);
      column++;
    } while (end == ',');
    if (column > 0) fputs("}\n", stdout);
  }
  return 0;
}
