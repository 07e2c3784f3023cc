// Style sheet, fonts, pictures and scripts of the pages, with content hashes in their names.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { loadLook } from "@platform/look";
import type { BrandLook } from "./brand.ts";
import { writeCommonPasswords } from "./common-passwords.ts";
import { drawTraces } from "./traces.ts";

const FOLDER = "/assets/";
const SCRIPT_TYPE = "text/javascript; charset=utf-8";
/** Scripts of the pages. Each page loads only those that it uses. */
const SCRIPTS = ["passkey", "password", "codes", "times"] as const;

/** A file that browsers may cache permanently. */
export interface Asset {
  /** `/assets/<name>-<hash>.<ending>` */
  readonly path: string;
  readonly type: string;
  readonly content: Buffer;
}

/** A script of the pages. */
export type ScriptName = (typeof SCRIPTS)[number];

/** The assets of the pages. */
export interface Assets {
  readonly style: Asset;
  readonly scripts: Readonly<Record<ScriptName, Asset>>;
  /** The module with the list of common passwords, which the script `password` loads when it needs it. */
  readonly commonPasswords: Asset;
  /** The icon in the browser's tab; without one, browsers ask for `/favicon.ico`. */
  readonly icon: Asset;
  /** The operator's logo. */
  readonly logo: Asset | undefined;
  /** All files. */
  readonly all: readonly Asset[];
}

/** Reads the assets; `brand` adds an operator's colour and logo. */
export function loadAssets(brand?: BrandLook): Assets {
  const look = loadLook(FOLDER);
  const traces = name("traces", "svg", "image/svg+xml", Buffer.from(drawTraces()));
  const sheet = read("style.css").toString().replace('url("traces.svg")', `url("${traces.path}")`);
  const style = name(
    "style",
    "css",
    "text/css; charset=utf-8",
    Buffer.from(`${look.style}${sheet}${brand?.style ?? ""}`),
  );
  const strength = name("strength", "js", SCRIPT_TYPE, read("strength.js"));
  const commonPasswords = name("common", "js", SCRIPT_TYPE, Buffer.from(writeCommonPasswords()));
  const scripts = Object.fromEntries(
    SCRIPTS.map((script) => {
      const text = read(`${script}.js`).toString().replace('"./strength.js"', `"${strength.path}"`);
      return [script, name(script, "js", SCRIPT_TYPE, Buffer.from(text))];
    }),
  ) as Record<ScriptName, Asset>;
  const modules = [strength, commonPasswords, ...Object.values(scripts)];
  const logo = brand?.logo && name("logo", brand.logo.ending, brand.logo.type, brand.logo.content);
  const icon = name("icon", "svg", "image/svg+xml", read("icon.svg"));
  const pictures = logo === undefined ? [traces, icon] : [traces, icon, logo];
  const all = [style, ...pictures, ...modules, ...look.fonts];
  return { style, scripts, commonPasswords, icon, logo, all };
}

function read(file: string): Buffer {
  return readFileSync(new URL(`assets/${file}`, import.meta.url));
}

function name(title: string, ending: string, type: string, content: Buffer): Asset {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return { path: `${FOLDER}${title}-${hash}.${ending}`, type, content };
}
