// A PNG on standard input to a PNG of at most 160 × 160 pixels on standard output. All kinds of PNG without interlacing are
// read (1 to 16 bits, grey, colour, palette, with or without alpha); the result has 8 bits of red, green, blue and alpha.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_MAX 160
#define INPUT_MAX (64u << 20)
#define PIXELS_MAX (24u << 20)

static void fail(const char *reason) {
  fprintf(stderr, "%s\n", reason);
  exit(2);
}

static void *allocate(size_t bytes) {
  void *memory = calloc(bytes ? bytes : 1, 1);
  if (!memory) fail("the image needs too much memory");
  return memory;
}

static uint32_t read_u32(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

// Inflate (RFC 1951).

typedef struct {
  const uint8_t *in;
  size_t length, at;
  uint32_t bits;
  int count;
  uint8_t *out;
  size_t out_length, out_at;
} Stream;

typedef struct {
  uint16_t counts[16], symbols[288];
} Codes;

static uint32_t take_bits(Stream *s, int wanted) {
  while (s->count < wanted) {
    if (s->at == s->length) fail("the image ends early");
    s->bits |= (uint32_t)s->in[s->at++] << s->count;
    s->count += 8;
  }
  uint32_t value = s->bits & ((1u << wanted) - 1);
  s->bits >>= wanted;
  s->count -= wanted;
  return value;
}

static void build_codes(Codes *codes, const uint8_t *lengths, int symbols) {
  uint16_t offsets[16];
  memset(codes->counts, 0, sizeof codes->counts);
  for (int n = 0; n < symbols; n++) codes->counts[lengths[n]]++;
  int left = 1;
  for (int length = 1; length < 16; length++) {
    left = left * 2 - codes->counts[length];
    if (left < 0) fail("the image is damaged: codes");
  }
  offsets[1] = 0;
  for (int length = 1; length < 15; length++) offsets[length + 1] = offsets[length] + codes->counts[length];
  for (int n = 0; n < symbols; n++)
    if (lengths[n]) codes->symbols[offsets[lengths[n]]++] = (uint16_t)n;
}

static int take_symbol(Stream *s, const Codes *codes) {
  int code = 0, first = 0, index = 0;
  for (int length = 1; length < 16; length++) {
    code |= (int)take_bits(s, 1);
    int count = codes->counts[length];
    if (code - count < first) return codes->symbols[index + code - first];
    index += count;
    first = (first + count) << 1;
    code <<= 1;
  }
  fail("the image is damaged: a code");
  return 0;
}

static void put_byte(Stream *s, uint8_t byte) {
  if (s->out_at == s->out_length) fail("the image is damaged: it is longer than it says");
  s->out[s->out_at++] = byte;
}

static const uint16_t LENGTHS[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                     31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t LENGTH_BITS[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t DISTANCES[30] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
                                       193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const uint8_t DISTANCE_BITS[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                          6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

static void inflate_codes(Stream *s, const Codes *literals, const Codes *distances) {
  for (;;) {
    int symbol = take_symbol(s, literals);
    if (symbol == 256) return;
    if (symbol < 256) {
      put_byte(s, (uint8_t)symbol);
      continue;
    }
    symbol -= 257;
    if (symbol >= 29) fail("the image is damaged: a length");
    size_t length = LENGTHS[symbol] + take_bits(s, LENGTH_BITS[symbol]);
    int code = take_symbol(s, distances);
    if (code >= 30) fail("the image is damaged: a distance");
    size_t distance = DISTANCES[code] + take_bits(s, DISTANCE_BITS[code]);
    if (distance > s->out_at) fail("the image is damaged: a distance");
    while (length--) put_byte(s, s->out[s->out_at - distance]);
  }
}

static void inflate_fixed(Stream *s) {
  Codes literals, distances;
  uint8_t lengths[288];
  for (int n = 0; n < 288; n++) lengths[n] = n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8;
  build_codes(&literals, lengths, 288);
  memset(lengths, 5, 30);
  build_codes(&distances, lengths, 30);
  inflate_codes(s, &literals, &distances);
}

static void inflate_dynamic(Stream *s) {
  static const uint8_t ORDER[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  Codes codes, distances;
  uint8_t lengths[320] = {0};
  int literals = (int)take_bits(s, 5) + 257, others = (int)take_bits(s, 5) + 1, count = (int)take_bits(s, 4) + 4;
  if (literals > 286 || others > 30) fail("the image is damaged: codes");
  for (int n = 0; n < count; n++) lengths[ORDER[n]] = (uint8_t)take_bits(s, 3);
  build_codes(&codes, lengths, 19);
  memset(lengths, 0, sizeof lengths);
  for (int n = 0; n < literals + others;) {
    int symbol = take_symbol(s, &codes);
    if (symbol < 16) {
      lengths[n++] = (uint8_t)symbol;
      continue;
    }
    if (symbol == 16 && n == 0) fail("the image is damaged: codes");
    uint8_t repeated = symbol == 16 ? lengths[n - 1] : 0;
    int times = symbol == 16 ? 3 + (int)take_bits(s, 2) : symbol == 17 ? 3 + (int)take_bits(s, 3) : 11 + (int)take_bits(s, 7);
    if (n + times > literals + others) fail("the image is damaged: codes");
    while (times--) lengths[n++] = repeated;
  }
  build_codes(&codes, lengths, literals);
  build_codes(&distances, lengths + literals, others);
  inflate_codes(s, &codes, &distances);
}

static void inflate_stored(Stream *s) {
  s->bits = 0;
  s->count = 0;
  if (s->length - s->at < 4) fail("the image ends early");
  size_t length = s->in[s->at] | (size_t)s->in[s->at + 1] << 8;
  s->at += 4;
  if (s->length - s->at < length) fail("the image ends early");
  while (length--) put_byte(s, s->in[s->at++]);
}

static void inflate_all(Stream *s) {
  s->at = 2;
  for (int last = 0; !last;) {
    last = (int)take_bits(s, 1);
    switch (take_bits(s, 2)) {
      case 0: inflate_stored(s); break;
      case 1: inflate_fixed(s); break;
      case 2: inflate_dynamic(s); break;
      default: fail("the image is damaged: a block");
    }
  }
  if (s->out_at != s->out_length) fail("the image is damaged: it is shorter than it says");
}

// PNG (ISO/IEC 15948).

typedef struct {
  uint32_t width, height;
  int depth, kind, channels;
  uint8_t palette[256][4];
  int colours;
  int has_key;
  uint16_t key[3];
  uint8_t *data;
  size_t data_length;
} Image;

static void read_header(Image *image, const uint8_t *at, uint32_t length) {
  static const int CHANNELS[7] = {1, 0, 3, 1, 2, 0, 4};
  if (length != 13) fail("not a PNG");
  image->width = read_u32(at);
  image->height = read_u32(at + 4);
  image->depth = at[8];
  image->kind = at[9];
  if (!image->width || !image->height || image->width > PIXELS_MAX || image->height > PIXELS_MAX / image->width)
    fail("the image has too many pixels");
  if (at[12]) fail("the image is interlaced");
  int isDepth = image->depth == 8 || (image->depth == 16 && image->kind != 3) ||
                ((image->depth == 1 || image->depth == 2 || image->depth == 4) && (image->kind == 0 || image->kind == 3));
  if (image->kind > 6 || !CHANNELS[image->kind] || !isDepth) fail("the image has an unknown kind");
  image->channels = CHANNELS[image->kind];
}

static void read_transparency(Image *image, const uint8_t *at, uint32_t length) {
  if (image->kind == 3) {
    for (uint32_t n = 0; n < length && n < 256; n++) image->palette[n][3] = at[n];
    return;
  }
  if (length < (image->kind == 2 ? 6u : 2u)) return;
  image->has_key = image->kind == 0 || image->kind == 2;
  for (int n = 0; n < (image->kind == 2 ? 3 : 1); n++) image->key[n] = (uint16_t)(at[2 * n] << 8 | at[2 * n + 1]);
}

static void read_chunks(Image *image, const uint8_t *file, size_t length) {
  static const uint8_t MAGIC[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (length < 33 || memcmp(file, MAGIC, 8)) fail("not a PNG");
  image->data = allocate(length);
  for (size_t at = 8; length - at >= 12;) {
    uint32_t bytes = read_u32(file + at);
    const uint8_t *type = file + at + 4, *content = file + at + 8;
    if (bytes > length - at - 12) fail("the image ends early");
    if (at == 8 && memcmp(type, "IHDR", 4)) fail("not a PNG");
    if (!memcmp(type, "IHDR", 4)) read_header(image, content, bytes);
    else if (!memcmp(type, "PLTE", 4)) {
      image->colours = bytes / 3 > 256 ? 256 : (int)(bytes / 3);
      for (int n = 0; n < image->colours; n++) {
        memcpy(image->palette[n], content + 3 * n, 3);
        image->palette[n][3] = 255;
      }
    } else if (!memcmp(type, "tRNS", 4)) read_transparency(image, content, bytes);
    else if (!memcmp(type, "IDAT", 4)) {
      memcpy(image->data + image->data_length, content, bytes);
      image->data_length += bytes;
    } else if (!memcmp(type, "IEND", 4)) return;
    at += 12 + (size_t)bytes;
  }
  fail("the image ends early");
}

static int predict(int left, int up, int corner) {
  int estimate = left + up - corner;
  int a = abs(estimate - left), b = abs(estimate - up), c = abs(estimate - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

static void unfilter(uint8_t *row, const uint8_t *above, size_t bytes, size_t step, int filter) {
  if (filter > 4) fail("the image is damaged: a filter");
  for (size_t n = 0; n < bytes; n++) {
    int left = n >= step ? row[n - step] : 0, up = above ? above[n] : 0, corner = above && n >= step ? above[n - step] : 0;
    int added[5] = {0, left, up, (left + up) / 2, predict(left, up, corner)};
    row[n] = (uint8_t)(row[n] + added[filter]);
  }
}

// A sample as it is stored, of 1 to 16 bits.
static uint16_t read_sample(const Image *image, const uint8_t *row, size_t index) {
  if (image->depth == 8) return row[index];
  if (image->depth == 16) return (uint16_t)(row[2 * index] << 8 | row[2 * index + 1]);
  size_t bit = index * (size_t)image->depth;
  return (uint16_t)((row[bit / 8] >> (8 - image->depth - (int)(bit % 8))) & ((1 << image->depth) - 1));
}

static void read_pixel(const Image *image, const uint8_t *row, size_t x, uint8_t pixel[4]) {
  uint16_t samples[4];
  for (int n = 0; n < image->channels; n++) samples[n] = read_sample(image, row, x * (size_t)image->channels + (size_t)n);
  if (image->kind == 3) {
    if (samples[0] >= image->colours) fail("the image is damaged: a colour");
    memcpy(pixel, image->palette[samples[0]], 4);
    return;
  }
  int colours = image->kind & 2 ? 3 : 1, isKey = image->has_key;
  for (int n = 0; n < colours; n++) isKey = isKey && samples[n] == image->key[n];
  for (int n = 0; n < image->channels; n++)
    samples[n] = image->depth == 16 ? samples[n] >> 8 : (uint16_t)(samples[n] * 255 / ((1 << image->depth) - 1));
  for (int n = 0; n < 3; n++) pixel[n] = (uint8_t)samples[colours == 3 ? n : 0];
  pixel[3] = isKey ? 0 : image->kind & 4 ? (uint8_t)samples[colours] : 255;
}

// The mean of the pixels below each pixel of the result, weighted by their alpha.
static uint8_t *shrink(const Image *image, uint8_t *raw, size_t stride, uint32_t width, uint32_t height) {
  uint64_t *sums = allocate((size_t)width * height * 5 * sizeof *sums);
  uint8_t *out = allocate((size_t)width * height * 4);
  size_t step = (size_t)(image->channels * image->depth + 7) / 8;
  for (uint32_t y = 0; y < image->height; y++) {
    uint8_t *row = raw + (size_t)y * (stride + 1);
    unfilter(row + 1, y ? row - stride : NULL, stride, step, row[0]);
    size_t to_y = (size_t)((uint64_t)y * height / image->height);
    for (uint32_t x = 0; x < image->width; x++) {
      uint8_t pixel[4];
      read_pixel(image, row + 1, x, pixel);
      uint64_t *sum = sums + (to_y * width + (size_t)((uint64_t)x * width / image->width)) * 5;
      for (int n = 0; n < 3; n++) sum[n] += (uint64_t)pixel[n] * pixel[3];
      sum[3] += pixel[3];
      sum[4]++;
    }
  }
  for (size_t n = 0; n < (size_t)width * height; n++) {
    uint64_t *sum = sums + n * 5, alpha = sum[3];
    for (int c = 0; c < 3; c++) out[n * 4 + (size_t)c] = alpha ? (uint8_t)((sum[c] + alpha / 2) / alpha) : 0;
    out[n * 4 + 3] = (uint8_t)((alpha + sum[4] / 2) / sum[4]);
  }
  free(sums);
  return out;
}

// The result: one filter for all lines, and a deflate block with fixed codes.

static uint8_t *out;
static size_t out_at, out_size;
static uint32_t out_bits;
static int out_count;

static void put(uint8_t byte) {
  if (out_at == out_size) {
    out_size = out_size ? out_size * 2 : 65536;
    out = realloc(out, out_size);
    if (!out) fail("the image needs too much memory");
  }
  out[out_at++] = byte;
}

static void put_u32(uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) put((uint8_t)(value >> shift));
}

static void put_bits(uint32_t value, int count) {
  out_bits |= value << out_count;
  out_count += count;
  while (out_count >= 8) {
    put((uint8_t)out_bits);
    out_bits >>= 8;
    out_count -= 8;
  }
}

// Codes are stored from their highest bit on.
static void put_code(uint32_t code, int count) {
  uint32_t reversed = 0;
  for (int n = 0; n < count; n++) reversed |= ((code >> n) & 1) << (count - 1 - n);
  put_bits(reversed, count);
}

static void put_symbol(int symbol) {
  if (symbol < 144) put_code(0x30 + (uint32_t)symbol, 8);
  else if (symbol < 256) put_code(0x190 + (uint32_t)symbol - 144, 9);
  else if (symbol < 280) put_code((uint32_t)symbol - 256, 7);
  else put_code(0xc0 + (uint32_t)symbol - 280, 8);
}

static void put_match(size_t length, size_t distance) {
  int code = 28;
  while (LENGTHS[code] > length) code--;
  put_symbol(257 + code);
  put_bits((uint32_t)(length - LENGTHS[code]), LENGTH_BITS[code]);
  code = 29;
  while (DISTANCES[code] > distance) code--;
  put_code((uint32_t)code, 5);
  put_bits((uint32_t)(distance - DISTANCES[code]), DISTANCE_BITS[code]);
}

static void deflate_all(const uint8_t *in, size_t length) {
  static int32_t last[32768];
  memset(last, -1, sizeof last);
  put(0x78);
  put(0x9c);
  put_bits(3, 3);
  for (size_t at = 0; at < length;) {
    size_t matched = 0, distance = 0;
    if (length - at >= 3) {
      uint32_t slot = ((uint32_t)in[at] << 10 ^ (uint32_t)in[at + 1] << 5 ^ in[at + 2]) & 32767;
      if (last[slot] >= 0 && at - (size_t)last[slot] <= 32768) {
        distance = at - (size_t)last[slot];
        while (matched < 258 && at + matched < length && in[at + matched] == in[at + matched - distance]) matched++;
      }
      last[slot] = (int32_t)at;
    }
    if (matched >= 3) put_match(matched, distance);
    else put_symbol(in[at]);
    at += matched >= 3 ? matched : 1;
  }
  put_symbol(256);
  if (out_count) put_bits(0, 8 - out_count);
  uint32_t a = 1, b = 0;
  for (size_t at = 0; at < length; at++) {
    a = (a + in[at]) % 65521;
    b = (b + a) % 65521;
  }
  put_u32(b << 16 | a);
}

static void end_chunk(size_t start) {
  uint32_t crc = ~0u, bytes = (uint32_t)(out_at - start - 8);
  for (int n = 0; n < 4; n++) out[start + (size_t)n] = (uint8_t)(bytes >> (24 - 8 * n));
  for (size_t at = start + 4; at < out_at; at++) {
    crc ^= out[at];
    for (int n = 0; n < 8; n++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  put_u32(~crc);
}

static size_t begin_chunk(const char *type) {
  size_t start = out_at;
  put_u32(0);
  for (int n = 0; n < 4; n++) put((uint8_t)type[n]);
  return start;
}

static void write_image(const uint8_t *pixels, uint32_t width, uint32_t height) {
  static const uint8_t MAGIC[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, REST[5] = {8, 6, 0, 0, 0};
  size_t stride = (size_t)width * 4;
  uint8_t *lines = allocate((stride + 1) * height);
  for (uint32_t y = 0; y < height; y++) {
    uint8_t *line = lines + (size_t)y * (stride + 1);
    line[0] = 1;
    for (size_t n = 0; n < stride; n++)
      line[n + 1] = (uint8_t)(pixels[y * stride + n] - (n >= 4 ? pixels[y * stride + n - 4] : 0));
  }
  for (int n = 0; n < 8; n++) put(MAGIC[n]);
  size_t chunk = begin_chunk("IHDR");
  put_u32(width);
  put_u32(height);
  for (int n = 0; n < 5; n++) put(REST[n]);
  end_chunk(chunk);
  chunk = begin_chunk("IDAT");
  deflate_all(lines, (stride + 1) * height);
  end_chunk(chunk);
  end_chunk(begin_chunk("IEND"));
  fwrite(out, 1, out_at, stdout);
}

static uint8_t *read_input(size_t *length) {
  size_t size = 1 << 20;
  uint8_t *bytes = allocate(size);
  for (size_t got; (got = fread(bytes + *length, 1, size - *length, stdin)) > 0;) {
    *length += got;
    if (*length < size) continue;
    if (size >= INPUT_MAX) fail("the file is larger than 64 MiB");
    bytes = realloc(bytes, size *= 2);
    if (!bytes) fail("the image needs too much memory");
  }
  return bytes;
}

int main(void) {
  static Image image;
  size_t length = 0;
  uint8_t *file = read_input(&length);
  read_chunks(&image, file, length);
  free(file);
  size_t stride = ((size_t)image.width * (size_t)(image.channels * image.depth) + 7) / 8;
  Stream stream = {.in = image.data, .length = image.data_length, .out_length = (stride + 1) * image.height};
  stream.out = allocate(stream.out_length);
  inflate_all(&stream);
  uint32_t side = image.width > image.height ? image.width : image.height;
  uint32_t width = image.width, height = image.height;
  if (side > SIDE_MAX) {
    width = (uint32_t)((uint64_t)width * SIDE_MAX / side);
    height = (uint32_t)((uint64_t)height * SIDE_MAX / side);
  }
  if (!width) width = 1;
  if (!height) height = 1;
  write_image(shrink(&image, stream.out, stride, width, height), width, height);
  return 0;
}
