// An operator's name, colour and logo: shown on every page if they are legible and harmless, otherwise the start fails.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { deflateSync } from "node:zlib";
import { chromiumSkip } from "@platform/kernel/testing";
import { loadBrand } from "../../src/pages/brand.ts";
import { startWithAdmin } from "../client.ts";
import { STAGE_KINDS, startStage } from "../stage.ts";
import { Person, shareBrowser } from "./chromium.ts";
import { PageBrowser } from "./page-browser.ts";

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 32"><defs><linearGradient id="g"><stop stop-color="#b00"/></linearGradient></defs><path fill="url(#g)" d="M0 32 24 0l24 32z"/></svg>`;
const HOSTILE = `<script>ran=1</script><img src=x onerror="ran=1">`;

const folder = mkdtempSync(join(tmpdir(), "brand-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

function write(content: string | Buffer): string {
  const path = join(folder, `logo-${(files += 1)}`);
  writeFileSync(path, content);
  return path;
}

function createPng(width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 0, 0, 0, 0], 8);
  const chunk = (type: string, data: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)]);
  };
  const pixels = deflateSync(Buffer.alloc(8));
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", header),
    chunk("IDAT", pixels),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function load(settings: Record<string, string>): ReturnType<typeof loadBrand> {
  return loadBrand(settings as unknown as Parameters<typeof loadBrand>[0]);
}

test("colours in which text is illegible are refused, with the contrast and the way out", () => {
  for (const color of ["#0a6a5b", "#1f4fd8", "#7a0019", "#000000", "#5b3e96"]) {
    const { style } = load({ brand_color: color });
    assert.match(style, new RegExp(`--accent: ${color}; `));
    const dark = /dark\) \{.*--accent: (#[0-9a-f]{6})/.exec(style)?.[1];
    // The computed colour for dark pages passes the check of a chosen one.
    load({ brand_color: color, brand_color_dark: dark! });
  }
  assert.throws(() => load({ brand_color: "#ffe000" }), {
    name: "ConfigError",
    message: /brand_color: #ffe000 has a contrast of 1\.\d:1 with #f3f3ed.*4\.5:1.*darker/,
  });
  assert.throws(() => load({ brand_color: "#0a6a5b", brand_color_dark: "#0a6a5b" }), /lighter/);
  assert.throws(() => load({ brand_color_dark: "#ffffff" }), /requires brand_color/);
});

test("logos are PNG or SVG by their content, bounded, and without scripts or references", () => {
  assert.equal(load({ brand_logo: write(SVG) }).logo?.type, "image/svg+xml");
  assert.equal(
    load({ brand_logo: write(`\uFEFF<?xml version="1.0"?><!-- x -->${SVG}`) }).logo?.ending,
    "svg",
  );
  assert.equal(load({ brand_logo: write(createPng(64, 32)) }).logo?.type, "image/png");
  const open = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">`;
  const refused: [string | Buffer, RegExp][] = [
    [`${open}<script>alert(1)</script></svg>`, /active elements/],
    [`${open}<x:script>alert(1)</x:script></svg>`, /active elements/],
    [`${open}<foreignObject><p>x</p></foreignObject></svg>`, /active elements/],
    [`${open}<path onload="alert(1)"/></svg>`, /event handlers/],
    [`${open}<a xlink:href="javascript:alert(1)"><path/></a></svg>`, /references/],
    [`${open}<a href="&#106;avascript:alert(1)"><path/></a></svg>`, /references/],
    [`${open}<image href="https://evil.example/x.png"/></svg>`, /references/],
    [`${open}<use href='//evil.example/x.svg#a'/></svg>`, /references/],
    [`${open}<style>@import "https://evil.example/x.css"</style></svg>`, /references/],
    [`${open}<style>path{fill:url(https://evil.example/x)}</style></svg>`, /references/],
    [
      `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>${open}</svg>`,
      /neither a PNG nor an SVG/,
    ],
    [`<html><body>${SVG}</body></html>`, /neither a PNG nor an SVG/],
    ["GIF89a", /neither a PNG nor an SVG/],
    [Buffer.from([0xff, 0xfe, 0x00]), /neither a PNG nor an SVG/],
    ["", /neither a PNG nor an SVG/],
    [`<!---->`.repeat(30_000), /neither a PNG nor an SVG/],
    [createPng(4000, 10), /4000 × 10 pixels/],
    [Buffer.alloc(300_000), /larger than 262144 bytes/],
  ];
  for (const [content, problem] of refused) {
    assert.throws(
      () => load({ brand_logo: write(content) }),
      problem,
      String(content).slice(0, 200),
    );
  }
  assert.throws(() => load({ brand_logo: join(folder, "missing") }), /cannot be read: ENOENT/);
  assert.throws(() => load({ brand_logo: folder }), /is not a file/);
});

test("the service does not start with an illegible colour", async () => {
  const settings = await STAGE_KINDS[0]!.prepare();
  await assert.rejects(startStage({ ...settings, brand_color: "#ffff00" }), /brand_color: #ffff00/);
  await assert.rejects(startStage({ ...settings, brand_color: "red" }), /brand_color/);
  await assert.rejects(startStage({ ...settings, brand_name: "a\u0007b" }), /brand_name/);
});

test(
  "pages show name, colour and logo, which is served without rights of its own",
  { skip: chromiumSkip },
  async () => {
    const settings = await STAGE_KINDS[0]!.prepare();
    const stage = await startWithAdmin({
      ...settings,
      brand_name: HOSTILE,
      brand_color: "#7a0019",
      brand_logo: write(SVG),
    });
    const { text } = await new PageBrowser(stage).open("/sign-in");
    const path = /<img src="(\/assets\/logo-[0-9a-f]{16}\.svg)" alt="" \/>/.exec(text)![1]!;
    assert.ok(!text.includes("<img src=x") && !text.includes("<script>"));
    const logo = await fetch(new URL(path, stage.url));
    assert.equal(logo.headers.get("content-type"), "image/svg+xml");
    assert.equal(logo.headers.get("x-content-type-options"), "nosniff");
    assert.match(
      logo.headers.get("content-security-policy") ?? "",
      /^default-src 'none'.*; sandbox$/,
    );
    assert.equal(await logo.text(), SVG);

    const browser = await shareBrowser();
    const ada = await Person.begin(browser);
    await ada.open(`${stage.publicUrl}/sign-up`);
    await ada.expect("Create your account");
    assert.equal(
      await ada.page.evaluate("document.querySelector('.brand img').naturalWidth > 0"),
      true,
    );
    await ada.page.emulateMedia({ colorScheme: "light" });
    const readColor = "getComputedStyle(document.querySelector('button.full')).backgroundColor";
    await ada.page.waitForFunction(`${readColor} === "rgb(122, 0, 25)"`);
    await ada.enter({ Username: "ada", Password: "a long enough password" });
    await ada.press("Create account", "Your account");
    assert.equal(await ada.page.evaluate("globalThis.ran"), undefined);
    await ada.page.goto(`${stage.publicUrl}${path}`);
    await ada.end();
    await stage.close();
  },
);
