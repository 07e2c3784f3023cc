// A new project of the language for editors, and the answers that they show.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PLATFORM = fileURLToPath(new URL("../../bin/platform.js", import.meta.url));
export const { NODE_TEST_CONTEXT: _, ...environment } = process.env;

/** Makes the project `notes` in a folder; returns its own. */
export function makeNotes(root: string): string {
  const made = spawnSync(process.execPath, [PLATFORM, "init", "notes", "--language"], {
    cwd: root,
    env: environment,
    encoding: "utf8",
  });
  assert.equal(made.status, 0, made.stderr);
  return join(root, "notes");
}

/** A place in an answer: a link, or a location. */
export interface Target {
  readonly uri?: string;
  readonly targetUri?: string;
  readonly range?: { readonly start: { readonly line: number } };
  readonly targetRange?: { readonly start: { readonly line: number } };
}

/** `file:line` of the first place. */
export function locate([target]: readonly Target[]): string {
  const { uri, targetUri = uri!, range, targetRange = range! } = target!;
  return `${basename(targetUri)}:${targetRange.start.line + 1}`;
}
