// Accessibility of a page in a browser, by axe.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

const ROWS_MAX = 40;

/** The short form of axe: a page reads half as much. */
let source: string | undefined;

/**
 * Returns the rules of axe that a page breaks, each with the first elements that do. `rules` limits the check to these.
 * Rows of long tables are made in one way: those after the first {@link ROWS_MAX} are not examined. Styles and media of the
 * page are not loaded again: the rules that need them are off, or about pages with sound. Selectors
 * of elements are not computed, because their HTML names them.
 */
export async function findViolations(page: Page, rules?: readonly string[]): Promise<string[]> {
  source ??= readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(source);
  const options = {
    resultTypes: ["violations"],
    preload: false,
    selectors: false,
    ...(rules === undefined ? {} : { runOnly: rules }),
  };
  return await page.evaluate(
    `axe.run({ exclude: ["tbody > tr:nth-child(n + ${ROWS_MAX + 1})"] }, ${JSON.stringify(options)}).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" | ")))`,
  );
}
