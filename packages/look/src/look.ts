// Style sheet and fonts for pages that services make themselves. The console's bundle imports the same style sheets.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

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
  readonly fonts: readonly FontFile[];
}

const FONT_URL = /url\("(@fontsource-variable\/[\w./-]+\/([\w-]+)\.woff2)"\)/g;
const DARK = /\[data-theme="dark"\] \{([^}]*)\}/g;

/** Reads the look. The service answers the fonts at their paths, which begin with `fontPath`, such as `/assets/`. */
export function loadLook(fontPath: string): Look {
  const require = createRequire(import.meta.url);
  const fonts: FontFile[] = [];
  // Written out: `platform build` embeds files that are read in this form.
  const faces = readFileSync(new URL("fonts.css", import.meta.url), "utf8");
  const tokens = readFileSync(new URL("tokens.css", import.meta.url), "utf8");
  const page = readFileSync(new URL("page.css", import.meta.url), "utf8");
  const fontFaces = faces.replaceAll(FONT_URL, (_match, source: string, name: string) => {
    const content = readFileSync(require.resolve(source));
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
    const path = `${fontPath}${name}-${hash}.woff2`;
    fonts.push({ path, type: "font/woff2", content });
    return `url("${path}")`;
  });
  return { style: `${fontFaces}${tokens}${followSystem(tokens)}${page}`, fonts };
}

/** The dark values again, for pages without a script that sets `data-theme`. */
function followSystem(tokens: string): string {
  const blocks = [...tokens.matchAll(DARK)].map(([, values]) => values);
  // The first block has the values; the others, inside media queries, only adjust them.
  return `@media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) {${blocks[0] ?? ""}} }\n`;
}
