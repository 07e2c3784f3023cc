// `node tools/write-plain-blocks.ts [--check]`: writes the blocks of the guides that show a service file in plain TypeScript,
// each below the block in the service language that it is converted from.
import { execFileSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { convertToPlain } from "../services/runtime/src/language/plain.ts";
import { parseService } from "../services/runtime/src/language/parse.ts";

const PAGES = ["docs/guide/*.md", "docs/reference/service-language.md", "examples/*/README.md"];
const BLOCK = /^```ts\n(.*?)^```\n(?:\nIn plain TypeScript:\n\n```ts plain\n.*?^```\n)?/gms;

const isCheck = process.argv.includes("--check");
for (const path of globSync(PAGES).toSorted()) {
  const page = readFileSync(path, "utf8");
  const text = page.replaceAll(BLOCK, (found, source: string) => writeBlocks(found, source, path));
  if (text === page) continue;
  if (isCheck) {
    console.error(`${path} is out of date: run node tools/write-plain-blocks.ts`);
    process.exitCode = 1;
  } else writeFileSync(path, text);
}

function writeBlocks(found: string, source: string, path: string): string {
  // Excerpts of bodies are the same in both.
  if (!hasDeclarations(source)) return found;
  const plain = format(convertToPlain(source, path));
  return `\`\`\`ts\n${source}\`\`\`\n\nIn plain TypeScript:\n\n\`\`\`ts plain\n${plain}\`\`\`\n`;
}

/** As the formatter leaves blocks of pages. */
function format(code: string): string {
  const program = fileURLToPath(new URL("../node_modules/oxfmt/bin/oxfmt", import.meta.url));
  const args = [program, "--stdin-filepath=block.ts"];
  return execFileSync(process.execPath, args, { input: code, encoding: "utf8" });
}

function hasDeclarations(source: string): boolean {
  try {
    return parseService(source).declarations.length > 0;
  } catch {
    // A part of a body, such as one with `return`.
    return false;
  }
}
