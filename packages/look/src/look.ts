// Style sheet and fonts for pages that services make themselves. The console's bundle imports the same style sheets.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A font. Its name contains a hash of its content, so that browsers may cache it permanently. */
export interface FontFile {
  /** Path, below the one that was given to `loadLook`. */
  readonly path: string;
  /** Content type. */
  readonly type: string;
  readonly content: Buffer;
}

/** Style sheet and fonts of a page without a build. */
export interface Look {
  /**
   * Style sheet: fonts, tokens, and styles of plain elements. Dark if the system is; `data-theme` of the root element overrides it.
   */
  readonly style: string;
  /** Fonts and tokens without the plain elements, for pages that style all of their elements. */
  readonly tokens: string;
  readonly fonts: readonly FontFile[];
}

const FONT_URL = /url\("(@fontsource-variable\/[\w./-]+\/([\w-]+)\.woff2)"\)/g;
const FONT_FACE = /@font-face \{[^}]*\}\n/g;
const DARK = /\[data-theme="dark"\] \{([^}]*)\}/g;

/** Caching of fonts by browsers: their names change with their content. */
export const FONT_CACHE_CONTROL = "public, max-age=31536000, immutable";

/**
 * Reads the look. The service answers the fonts at their paths, which begin with `fontPath`, such as `/assets/`, with
 * `FONT_CACHE_CONTROL`. Executables contain no fonts: those of the system are used there.
 */
export function loadLook(fontPath: string): Look {
  const fonts: FontFile[] = [];
  const { faces, tokens, page } = readSheets();
  if (!canResolve()) return { style: `${tokens}${page}`, tokens, fonts };
  const fontFaces = faces.replaceAll(FONT_URL, (_match, source: string, name: string) => {
    const content = readFileSync(new URL(import.meta.resolve(source)));
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
    const path = `${fontPath}${name}-${hash}.woff2`;
    fonts.push({ path, type: "font/woff2", content });
    return `url("${path}")`;
  });
  return { style: `${fontFaces}${tokens}${page}`, tokens: `${fontFaces}${tokens}`, fonts };
}

/**
 * Reads the tokens with the Latin fonts as data URLs (72 KB), for pages of one file. Their policy needs `font-src data:`.
 * Executables contain no fonts: those of the system are used there.
 */
export function loadInlineTokens(): string {
  const { faces, tokens } = readSheets();
  if (!canResolve()) return tokens;
  const latin = faces.replaceAll(FONT_FACE, (face) => (face.includes("latin-ext") ? "" : face));
  const fontFaces = latin.replaceAll(FONT_URL, (_match, source: string) => {
    const content = readFileSync(new URL(import.meta.resolve(source)));
    return `url("data:font/woff2;base64,${content.toString("base64")}")`;
  });
  return `${fontFaces}${tokens}`;
}

// Executables do not resolve modules.
function canResolve(): boolean {
  return typeof import.meta.resolve === "function";
}

function readSheets(): { faces: string; tokens: string; page: string } {
  // Written out: `platform build` embeds files that are read in this form.
  const faces = readFileSync(new URL("fonts.css", import.meta.url), "utf8");
  const tokens = readFileSync(new URL("tokens.css", import.meta.url), "utf8");
  const page = readFileSync(new URL("page.css", import.meta.url), "utf8");
  return { faces, tokens: `${tokens}${followSystem(tokens)}`, page };
}

/** The dark values again, for pages without a script that sets `data-theme`. */
function followSystem(tokens: string): string {
  // The first block has the values; the second adjusts them for systems that ask for more contrast.
  const [dark = "", contrast = ""] = [...tokens.matchAll(DARK)].map(([, values]) => values);
  return ["", " and (prefers-contrast: more)"]
    .map((condition, index) => {
      const values = index === 0 ? dark : contrast;
      return `@media (prefers-color-scheme: dark)${condition} { :root:not([data-theme="light"]) {${values}} }\n`;
    })
    .join("");
}
