// Executes the script in `x-script` in handle_request, that in `x-then` in handle_response. Built without a library:
//
//   clang --target=wasm32 -O2 -nostdlib -fno-builtin -Wl,--no-entry -Wl,--strip-all -o script-c.wasm script.c
//
// A script is a list of calls, separated by "|", their arguments by spaces; %XX is a byte. `x-out` of the response has the
// results: `name=number`, and the buffer after it, which was filled with "#", with "." for NUL.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define HOST(name) __attribute__((import_module("http_handler"), import_name(#name)))
HOST(enable_features) u32 enable_features(u32 features);
HOST(get_config) u32 get_config(u8 *at, u32 limit);
HOST(log) void log_line(int level, const u8 *at, u32 length);
HOST(log_enabled) u32 log_enabled(int level);
HOST(get_method) u32 get_method(u8 *at, u32 limit);
HOST(set_method) void set_method(const u8 *at, u32 length);
HOST(get_uri) u32 get_uri(u8 *at, u32 limit);
HOST(set_uri) void set_uri(const u8 *at, u32 length);
HOST(get_protocol_version) u32 get_protocol_version(u8 *at, u32 limit);
HOST(get_source_addr) u32 get_source_addr(u8 *at, u32 limit);
HOST(get_header_names) u64 get_header_names(u32 kind, u8 *at, u32 limit);
HOST(get_header_values) u64 get_header_values(u32 kind, const u8 *name, u32 length, u8 *at, u32 limit);
HOST(set_header_value) void set_header_value(u32 kind, const u8 *name, u32 length, const u8 *at, u32 size);
HOST(add_header_value) void add_header_value(u32 kind, const u8 *name, u32 length, const u8 *at, u32 size);
HOST(remove_header) void remove_header(u32 kind, const u8 *name, u32 length);
HOST(read_body) u64 read_body(u32 kind, u8 *at, u32 limit);
HOST(write_body) void write_body(u32 kind, const u8 *at, u32 length);
HOST(get_status_code) u32 get_status_code(void);
HOST(set_status_code) void set_status_code(u32 status);

enum { SCRIPT_MAX = 8192, OUT_MAX = 12288, BUFFER_BYTES = 8192, SHOWN_MAX = 96, WORDS_MAX = 5 };

static u8 script[SCRIPT_MAX];
static u8 out[OUT_MAX];
static u8 memory_buffer[BUFFER_BYTES];
static u8 *buffer = memory_buffer;
static u32 out_length;
static u64 result;
static u32 seen_context, seen_error;

typedef struct { u8 *at; u32 length; } text;

static void put(u8 byte) { if (out_length < OUT_MAX) out[out_length++] = byte; }
static void put_text(text part) { for (u32 i = 0; i < part.length; i++) put(part.at[i]); }
static void put_number(u32 number) {
  if (number >= 10) put_number(number / 10);
  put('0' + number % 10);
}

static void show(u32 limit) {
  u32 end = limit + 2 > SHOWN_MAX ? SHOWN_MAX : limit + 2;
  put('[');
  for (u32 i = 0; i < end; i++) put(buffer[i] == 0 ? '.' : buffer[i] < 32 || buffer[i] > 126 ? '?' : buffer[i]);
  put(']');
}

static void give(u32 number, u32 limit) { put_number(number); show(limit); }
static void give_pair(u64 pair, u32 limit) {
  put_number((u32)(pair >> 32));
  put(':');
  give((u32)pair, limit);
}

static u32 read_number(text word) {
  u32 number = 0, at = word.length > 0 && word.at[0] == '-';
  for (u32 i = at; i < word.length; i++) number = number * 10 + word.at[i] - '0';
  return at ? 0 - number : number;
}

static int is(text word, const char *name) {
  u32 i = 0;
  for (; i < word.length && name[i] != 0; i++) if (word.at[i] != (u8)name[i]) return 0;
  return i == word.length && name[i] == 0;
}

static u8 read_digit(u8 digit) { return digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10; }
static void decode(text *word) {
  u32 to = 0;
  for (u32 i = 0; i < word->length; i++) {
    u8 byte = word->at[i];
    if (byte == '%' && i + 2 < word->length) {
      byte = read_digit(word->at[i + 1]) * 16 + read_digit(word->at[i + 2]);
      i += 2;
    }
    word->at[to++] = byte;
  }
  word->length = to;
}

static void run(text *w) {
  text name = w[0];
  u32 a = read_number(w[1]), b = read_number(w[2]), c = read_number(w[3]);
  for (u32 i = 0; i < BUFFER_BYTES; i++) buffer[i] = '#';
  put_text(name);
  put('=');
  if (is(name, "features")) put_number(enable_features(a));
  else if (is(name, "config")) give(get_config(buffer, a), a);
  else if (is(name, "log")) log_line((int)a, w[2].at, w[2].length);
  else if (is(name, "enabled")) put_number(log_enabled((int)a));
  else if (is(name, "method")) give(get_method(buffer, a), a);
  else if (is(name, "set_method")) set_method(w[1].at, w[1].length);
  else if (is(name, "uri")) give(get_uri(buffer, a), a);
  else if (is(name, "set_uri")) set_uri(w[1].at, w[1].length);
  else if (is(name, "version")) give(get_protocol_version(buffer, a), a);
  else if (is(name, "source")) give(get_source_addr(buffer, a), a);
  else if (is(name, "names")) give_pair(get_header_names(a, buffer, b), b);
  else if (is(name, "values")) give_pair(get_header_values(a, w[2].at, w[2].length, buffer, c), c);
  else if (is(name, "set")) set_header_value(a, w[2].at, w[2].length, w[3].at, w[3].length);
  else if (is(name, "add")) add_header_value(a, w[2].at, w[2].length, w[3].at, w[3].length);
  else if (is(name, "remove")) remove_header(a, w[2].at, w[2].length);
  else if (is(name, "read")) give_pair(read_body(a, buffer, b), b);
  else if (is(name, "write")) write_body(a, w[2].at, w[2].length);
  else if (is(name, "fill")) write_body(a, buffer, b);
  else if (is(name, "status")) put_number(get_status_code());
  else if (is(name, "set_status")) set_status_code(a);
  else if (is(name, "grow")) {
    u32 pages = (u32)__builtin_wasm_memory_grow(0, a);
    if (pages != (u32)-1) buffer = (u8 *)(pages * 65536);
    put(pages == (u32)-1 ? 'n' : 'y');
  } else if (is(name, "outside")) put_number(get_method((u8 *)0xfffffff0u, a));
  else if (is(name, "next")) result = (u64)a << 32 | 1;
  else if (is(name, "answer")) result = (u64)a << 32;
  else if (is(name, "raw")) result = a;
  else if (is(name, "context")) put_number(seen_context);
  else if (is(name, "error")) put_number(seen_error);
  else __builtin_trap();
  put('|');
}

static void run_all(const char *field) {
  u32 name_length = 0;
  while (field[name_length] != 0) name_length++;
  u32 length = (u32)get_header_values(0, (const u8 *)field, name_length, script, SCRIPT_MAX);
  if (length == 0 || length > SCRIPT_MAX) return;
  text words[WORDS_MAX] = {{0, 0}};
  u32 count = 0, from = 0;
  for (u32 i = 0; i < length; i++) {
    u8 byte = script[i];
    if (byte != ' ' && byte != '|' && byte != 0) continue;
    if (count < WORDS_MAX) words[count++] = (text){script + from, i - from};
    from = i + 1;
    if (byte == ' ') continue;
    for (u32 k = 0; k < WORDS_MAX; k++) {
      if (k >= count) words[k] = (text){0, 0};
      else decode(&words[k]);
    }
    run(words);
    count = 0;
    if (byte == 0) return;
  }
}

static void report(void) { set_header_value(1, (const u8 *)"x-out", 5, out, out_length); }

__attribute__((export_name("handle_request"))) u64 handle_request(void) {
  out_length = 0;
  result = 1;
  run_all("x-script");
  if ((result & 1) == 0) report();
  return result;
}

__attribute__((export_name("handle_response"))) void handle_response(u32 context, u32 is_error) {
  seen_context = context;
  seen_error = is_error;
  run_all("x-then");
  report();
}
