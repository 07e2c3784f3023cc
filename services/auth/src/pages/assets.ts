// Style sheet and script of the pages, with content hashes in their names.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A file that browsers may cache permanently. */
export interface Asset {
  /** `/assets/<name>-<hash>.<ending>` */
  readonly path: string;
  readonly type: string;
  readonly content: Buffer;
}

/** The assets of the pages. */
export interface Assets {
  readonly style: Asset;
  readonly passkeyScript: Asset;
}

/** Reads the assets. */
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
