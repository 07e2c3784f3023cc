// The files of the inspector's page, as they are: no build, no scripts from elsewhere. Tokens and fonts are those of all pages.
import { readFileSync } from "node:fs";
import { FONT_CACHE_CONTROL, loadLook } from "@platform/look";

/** A file. */
export interface Asset {
  readonly type: string;
  readonly content: Buffer;
  /** Fonts are cached, as their names change with their content. */
  readonly cacheControl?: string;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

const NAMES = [
  "index.html",
  "style.css",
  "icon.svg",
  "app.js",
  "content.js",
  "curl.js",
  "detail.js",
  "dom.js",
  "edit.js",
  "list.js",
  "relay.js",
  "share.js",
  "trace.js",
];

/** Reads the files; keys are paths such as `/app.js`, and `/` for the page. */
export function loadAssets(): ReadonlyMap<string, Asset> {
  const { tokens, fonts } = loadLook("/fonts/");
  const assets = new Map<string, Asset>(
    fonts.map(({ path, ...font }) => [path, { ...font, cacheControl: FONT_CACHE_CONTROL }]),
  );
  for (const name of NAMES) {
    const ending = name.slice(name.lastIndexOf(".") + 1);
    const file = readFileSync(new URL(`assets/${name}`, import.meta.url));
    const content = ending === "css" ? Buffer.concat([Buffer.from(tokens), file]) : file;
    const path = name === "index.html" ? "/" : `/${name}`;
    assets.set(path, { type: TYPES[ending] ?? "", content });
  }
  return assets;
}
