// Replaces personal data in all values of a JSON document.
import { setImmediate } from "node:timers/promises";
import type { BodyEdit } from "../shape/edit-body.ts";
import { JsonKind, type JsonScanner } from "../shape/json-scan.ts";
import type { PiiSearch } from "./entity.ts";
import { MaskedText, maskText } from "./mask-text.ts";
import type { Placeholders } from "./placeholders.ts";

const SLICE_MS = 4;
const NODES_PER_CHECK = 64;
/** Longer strings are searched in pieces. */
const PIECE_CHARACTERS = 32_768;
/** Longest secret that comes back from a long string. */
const LONG_HELD_MAX = 16_384;
const NUMBER_DIGITS_MIN = 12;
/** Members whose values are no texts of people. */
const KEPT_NAMES: ReadonlySet<string> = new Set(["model", "role", "type", "id", "name"]);
/** Members whose texts are JSON themselves. */
const JSON_NAMES: ReadonlySet<string> = new Set(["arguments", "partial_json"]);
const DATA_URL = "data:";

/** Writes a value into JSON that is itself a string. */
export function encodeJson(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

/** Writes a value into plain text. */
export function encodePlain(value: string): string {
  return value;
}

/** Chooses how values are written into the string at a node. */
function chooseEncoding(tree: JsonScanner, node: number): (value: string) => string {
  return JSON_NAMES.has(tree.name(node)) ? encodeJson : encodePlain;
}

/** Options of {@link maskTree}. */
export interface MaskTreeOptions {
  readonly search: PiiSearch;
  readonly placeholders: Placeholders;
  /** Puts the values of placeholders back, in answers. */
  readonly restores: boolean;
  /** Nodes that are left alone. */
  readonly skipped?: ReadonlySet<number>;
}

/**
 * The edits that replace all entities of a scanned document. Waits now and then, so that long documents do not keep other
 * requests of the thread waiting.
 */
export async function maskTree(tree: JsonScanner, options: MaskTreeOptions): Promise<BodyEdit[]> {
  const edits: BodyEdit[] = [];
  let startMs = performance.now();
  for (let node = 0; node < tree.count; node++) {
    const size = tree.end(node) - tree.start(node);
    if (tree.kind(node) === JsonKind.String && size > PIECE_CHARACTERS)
      await maskLong(tree, node, options, edits);
    else maskNode(tree, node, options, edits);
    if (node % NODES_PER_CHECK !== 0 && size < PIECE_CHARACTERS) continue;
    if (performance.now() - startMs < SLICE_MS) continue;
    await setImmediate();
    startMs = performance.now();
  }
  return edits;
}

/** Masks a long text, without keeping other requests of the thread waiting. */
export async function maskInPieces(text: string, stream: MaskedText): Promise<string> {
  let masked = "";
  for (let at = 0; at < text.length; at += PIECE_CHARACTERS) {
    masked += stream.push(text.slice(at, at + PIECE_CHARACTERS));
    await setImmediate();
  }
  return masked + stream.end();
}

/** The edits of a short document, such as an event. */
export function maskSmallTree(tree: JsonScanner, options: MaskTreeOptions): BodyEdit[] {
  const edits: BodyEdit[] = [];
  for (let node = 0; node < tree.count; node++) maskNode(tree, node, options, edits);
  return edits;
}

function maskNode(
  tree: JsonScanner,
  node: number,
  options: MaskTreeOptions,
  edits: BodyEdit[],
): void {
  const kind = tree.kind(node);
  if (options.skipped?.has(node) === true) return;
  if (kind === JsonKind.Number) maskNumber(tree, node, options, edits);
  if (kind !== JsonKind.String || tree.end(node) - tree.start(node) < 5) return;
  const text = tree.text(node);
  const { placeholders, restores } = options;
  const isKept = isKeptText(tree, node, text);
  const masked = isKept ? undefined : maskText(text, options.search, placeholders);
  let changed = masked ?? text;
  if (restores && placeholders.isReversible)
    changed = placeholders.restore(changed, chooseEncoding(tree, node));
  if (changed !== text) edits.push(replaceString(tree, node, changed));
}

function isKeptText(tree: JsonScanner, node: number, text: string): boolean {
  return KEPT_NAMES.has(tree.name(node)) || isDataUrl(text);
}

function isDataUrl(text: string): boolean {
  return text.startsWith(DATA_URL) && text.slice(0, 256).includes(";base64,");
}

function replaceString(tree: JsonScanner, node: number, text: string): BodyEdit {
  return { start: tree.start(node), end: tree.end(node), text: JSON.stringify(text) };
}

function maskNumber(
  tree: JsonScanner,
  node: number,
  { search, placeholders }: MaskTreeOptions,
  edits: BodyEdit[],
): void {
  if (tree.end(node) - tree.start(node) < NUMBER_DIGITS_MIN) return;
  const digits = tree.bytes.toString("latin1", tree.start(node), tree.end(node));
  const masked = maskText(digits, search, placeholders);
  if (masked !== undefined) edits.push(replaceString(tree, node, masked));
}

async function maskLong(
  tree: JsonScanner,
  node: number,
  options: MaskTreeOptions,
  edits: BodyEdit[],
): Promise<void> {
  const text = tree.text(node);
  if (isKeptText(tree, node, text)) return;
  const { search, placeholders, restores } = options;
  const encode = restores ? chooseEncoding(tree, node) : undefined;
  const masked = await maskInPieces(
    text,
    new MaskedText({ search, placeholders, encode, heldMax: LONG_HELD_MAX }),
  );
  if (masked !== text) edits.push(replaceString(tree, node, masked));
}
