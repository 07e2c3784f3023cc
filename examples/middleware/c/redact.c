// Replaces digits in runs of 12 to 19, as card numbers have, in text and JSON responses. Built without a library.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define HOST(name) __attribute__((import_module("http_handler"), import_name(#name)))
#define EXPORT(name) __attribute__((export_name(#name)))

HOST(enable_features) u32 enable_features(u32 features);
HOST(get_header_values) u64 get_header_values(u32 kind, const char *name, u32 length, u8 *at, u32 limit);
HOST(read_body) u64 read_body(u32 kind, u8 *at, u32 limit);
HOST(write_body) void write_body(u32 kind, const u8 *at, u32 length);

enum { RESPONSE = 1, BUFFER_RESPONSE = 2, RUN_MIN = 12, RUN_MAX = 19, TYPE_BYTES = 256, PIECE_BYTES = 65536 };
enum { BODY_MAX = 4 * 1024 * 1024, PAGE_BYTES = 65536 };

extern u8 __heap_base;

EXPORT(handle_request) u64 handle_request(void) {
  enable_features(BUFFER_RESPONSE);
  return 1;
}

static int starts_with(const u8 *text, const char *start) {
  while (*start != 0)
    if (*text++ != (u8)*start++) return 0;
  return 1;
}

static int is_text(void) {
  u8 type[TYPE_BYTES];
  u64 found = get_header_values(RESPONSE, "content-type", 12, type, TYPE_BYTES);
  // A coded body is not read.
  if (found == 0 || (u32)found > TYPE_BYTES || get_header_values(RESPONSE, "content-encoding", 16, type, 0) != 0)
    return 0;
  return starts_with(type, "text/") || starts_with(type, "application/json");
}

// Makes room for `bytes` behind the data of the module, which is the only user of the memory there.
static void reserve(u32 bytes) {
  u32 wanted = ((u32)&__heap_base + bytes + PAGE_BYTES - 1) / PAGE_BYTES;
  u32 present = (u32)__builtin_wasm_memory_size(0);
  if (wanted > present && __builtin_wasm_memory_grow(0, wanted - present) == (__SIZE_TYPE__)-1) __builtin_trap();
}

static u32 read_all(u8 *body) {
  u32 length = 0;
  for (u64 read = 0; read >> 32 == 0; length += (u32)read) {
    // More than it can hold ends the request rather than to pass unredacted.
    if (length > BODY_MAX) __builtin_trap();
    reserve(length + PIECE_BYTES);
    read = read_body(RESPONSE, body + length, PIECE_BYTES);
  }
  return length;
}

static int redact(u8 *body, u32 length) {
  int is_changed = 0;
  for (u32 at = 0; at < length; at++) {
    u32 end = at;
    while (end < length && body[end] >= '0' && body[end] <= '9') end++;
    if (end - at >= RUN_MIN && end - at <= RUN_MAX) {
      for (u32 digit = at; digit < end; digit++) body[digit] = '*';
      is_changed = 1;
    }
    at = end;
  }
  return is_changed;
}

EXPORT(handle_response) void handle_response(u32 context, u32 is_error) {
  (void)context, (void)is_error;
  if (!is_text()) return;
  u8 *body = &__heap_base;
  u32 length = read_all(body);
  if (redact(body, length)) write_body(RESPONSE, body, length);
}
