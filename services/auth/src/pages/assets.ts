// The style sheet and the script of the pages, under names that change with their content.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A file that browsers may keep for ever. */
export interface Asset {
  /** `/assets/<name>-<hash>.<ending>` */
  readonly path: string;
  readonly type: string;
  readonly content: Buffer;
}

/** The files there are. */
export interface Assets {
  readonly style: Asset;
  readonly passkeyScript: Asset;
}

/** Reads them, once. */
export function loadAssets(): Assets {
  return {
    style: load("style", "css", "text/css; charset=utf-8"),
    passkeyScript: load("passkey", "js", "text/javascript; charset=utf-8"),
  };
}

function load(name: string, ending: string, type: string): Asset {
  const content = readFileSync(new URL(`assets/${name}.${ending}`, import.meta.url));
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return { path: `/assets/${name}-${hash}.${ending}`, type, content };
}
