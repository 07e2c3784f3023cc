// `node tools/write-policy-matcher.ts`: writes the module of compiled policies from its text.
import { readFileSync, writeFileSync } from "node:fs";
import { assemble } from "@platform/testing/guests";

const FOLDER = new URL("../services/gate/src/policy-compiler/", import.meta.url);
const MODULE = new URL("matcher-module.ts", FOLDER);

/** The module's file as its source makes it. */
export function composeMatcherModule(): string {
  const bytes = assemble(readFileSync(new URL("matcher.wat", FOLDER), "utf8"));
  const base64 = Buffer.from(bytes).toString("base64");
  const lines = base64.match(/.{1,100}/g) ?? [];
  return `// The matcher of compiled policies, from \`matcher.wat\` by \`node tools/write-policy-matcher.ts\`.

/** The module in base64, without the data of rules. */
export const MATCHER_MODULE = \`
${lines.join("\n")}
\`;
`;
}

/** The file as it is. */
export function readMatcherModule(): string {
  return readFileSync(MODULE, "utf8");
}

if (import.meta.main) writeFileSync(MODULE, composeMatcherModule());
