// Served pages have the same values as the console, follow the system's theme, and load fonts from their own server only.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadInlineTokens, loadLook } from "../src/index.ts";

const { style, fonts } = loadLook("/assets/");

test("each font of the style sheet is one of the files, and a WOFF2 file", () => {
  const urls = [...style.matchAll(/url\("([^"]*)"\)/g)].map(([, url]) => url);
  assert.deepEqual(
    urls,
    fonts.map(({ path }) => path),
  );
  assert.ok(urls.length > 0);
  for (const { path, content } of fonts) {
    assert.match(path, /^\/assets\/[\w-]+-[0-9a-f]{16}\.woff2$/);
    assert.equal(content.toString("latin1", 0, 4), "wOF2");
  }
});

test("without a theme, dark values apply if the system is dark", () => {
  const [, explicit = ""] = /\[data-theme="dark"\] \{([^}]*)\}/.exec(style) ?? [];
  const [, system = ""] =
    /prefers-color-scheme: dark\) \{ :root:not\(\[data-theme="light"\]\) \{([^}]*)\}/.exec(style) ??
    [];
  assert.match(explicit, /--paper: #/);
  assert.equal(system, explicit);
});

test("pages of one file have the tokens and the Latin fonts in themselves", () => {
  const tokens = loadInlineTokens();
  assert.match(tokens, /--paper: #/);
  const urls = [...tokens.matchAll(/url\("([^"]*)"\)/g)].map(([, url]) => String(url));
  assert.equal(urls.length, 2);
  for (const url of urls) assert.match(url, /^data:font\/woff2;base64,d09GMg/);
  assert.ok(Buffer.byteLength(tokens) < 85_000);
});

test("more contrast is followed in dark systems, too", () => {
  const condition = "(prefers-color-scheme: dark) and (prefers-contrast: more)";
  const [, values = ""] = style.split(condition);
  assert.match(values, /^ \{ :root:not\(\[data-theme="light"\]\) \{\s*--line: #6d766d/);
});
