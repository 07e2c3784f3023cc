// Name, colour and logo that an operator configured, checked at startup.
import { readFileSync, statSync } from "node:fs";
import { ConfigError } from "@platform/kernel/config";
import { loadLook } from "@platform/look";
import type { AuthConfig } from "../config.ts";
import { findSvgProblem, readRaster } from "../web/image.ts";

const LOGO_BYTES_MAX = 262_144;
const LOGO_PIXELS_MAX = 2_048;
/** WCAG 2.2, success criterion 1.4.3. */
const CONTRAST_MIN = 4.5;
const LIGHTER_STEP = 0.04;

/** Look of the pages in addition to that of the platform. */
export interface BrandLook {
  /** Style sheet that sets the colour; empty without one. */
  readonly style: string;
  readonly logo: { ending: "svg" | "png"; type: string; content: Buffer } | undefined;
}

type Settings = Pick<AuthConfig, "brand_color" | "brand_color_dark" | "brand_logo">;
type Rgb = readonly [red: number, green: number, blue: number];

/** Reads the settings. Throws a ConfigError for a logo that is not a picture, and for colours that text is illegible in. */
export function loadBrand(settings: Settings): BrandLook {
  const { brand_color: color, brand_color_dark: dark, brand_logo: path } = settings;
  if (color === undefined && dark !== undefined)
    throw refuse("brand_color_dark", "requires brand_color");
  return {
    style: color === undefined ? "" : createStyle(color, dark),
    logo: path === undefined ? undefined : readLogo(path),
  };
}

function createStyle(color: string, dark: string | undefined): string {
  const { paper, raise, onDark } = readPlanes();
  const light = toRgb(color);
  requireContrast("brand_color", color, light, paper, "darker");
  const bright = dark === undefined ? lighten(light, raise) : toRgb(dark);
  if (dark !== undefined) requireContrast("brand_color_dark", dark, bright, raise, "lighter");
  const name = (rgb: Rgb): string =>
    `--accent: ${toHex(rgb)}; --focus: ${toHex(rgb)}; --on-accent: `;
  return `:root { ${name(light)}#ffffff; }
@media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { ${name(bright)}${toHex(onDark)}; } }
.ask .art::before { background: var(--accent); }
`;
}

// The planes on which the colour has the least contrast, and the text on it in the dark.
function readPlanes(): Record<"paper" | "raise" | "onDark", Rgb> {
  const { tokens } = loadLook("/");
  const read = (block: string, token: string): Rgb => {
    const start = tokens.indexOf(block);
    const found = new RegExp(`--${token}: (#[0-9a-f]{6})`).exec(tokens.slice(start));
    if (found === null) throw new Error(`the tokens have no ${token}`);
    return toRgb(found[1]!);
  };
  const [lightBlock, darkBlock] = [":root {", '[data-theme="dark"] {'];
  return {
    paper: read(lightBlock, "paper"),
    raise: read(darkBlock, "raise"),
    onDark: read(darkBlock, "paper"),
  };
}

function requireContrast(key: string, text: string, color: Rgb, plane: Rgb, way: string): void {
  const contrast = measureContrast(color, plane);
  if (contrast >= CONTRAST_MIN) return;
  const ratio = (Math.floor(contrast * 10) / 10).toFixed(1);
  throw refuse(
    key,
    `${text} has a contrast of ${ratio}:1 with ${toHex(plane)}, and text requires ${CONTRAST_MIN}:1: choose a ${way} colour`,
  );
}

function lighten(color: Rgb, plane: Rgb): Rgb {
  let lighter = color;
  for (let part = 0; measureContrast(lighter, plane) < CONTRAST_MIN; part += LIGHTER_STEP) {
    lighter = color.map((value) => Math.round(value + (255 - value) * part)) as unknown as Rgb;
  }
  return lighter;
}

// WCAG 2.2, relative luminance and contrast ratio.
function measureContrast(one: Rgb, other: Rgb): number {
  const [darker = 0, lighter = 0] = [measureLuminance(one), measureLuminance(other)].sort(
    (a, b) => a - b,
  );
  return (lighter + 0.05) / (darker + 0.05);
}

function measureLuminance(color: Rgb): number {
  const [red, green, blue] = color.map((value) => {
    const part = value / 255;
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function toRgb(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function toHex(color: Rgb): string {
  return `#${color.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function readLogo(path: string): BrandLook["logo"] {
  let content: Buffer;
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw refuse("brand_logo", `${path} is not a file`);
    if (stats.size > LOGO_BYTES_MAX)
      throw refuse("brand_logo", `${path} is larger than ${LOGO_BYTES_MAX} bytes`);
    content = readFileSync(path);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw refuse("brand_logo", `${path} cannot be read: ${(error as Error).message}`);
  }
  const raster = readRaster(content);
  if (raster?.type === "image/png") {
    const { width, height } = raster;
    if (Math.max(width, height) > LOGO_PIXELS_MAX || Math.min(width, height) === 0)
      throw refuse("brand_logo", `${path} has ${width} × ${height} pixels, at most 2048 × 2048`);
    return { ending: "png", type: raster.type, content };
  }
  const problem = findSvgProblem(content);
  if (problem === "is not an SVG" || problem === "is not UTF-8")
    throw refuse("brand_logo", `${path} is neither a PNG nor an SVG`);
  if (problem !== undefined) throw refuse("brand_logo", `${path} ${problem}: remove it`);
  return { ending: "svg", type: "image/svg+xml", content };
}

function refuse(path: string, message: string): ConfigError {
  return new ConfigError([{ source: "configuration", path, message }]);
}
