// `node tools/write-reference.ts [--check]`: writes the configuration reference of every service under docs/reference/.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { formatReference } from "@platform/kernel/config";
import { gateDefinition } from "../services/gate/src/config/document.ts";
import { configDefinition as runtimeDefinition } from "../services/runtime/src/config.ts";

const pages = [
  { path: "docs/reference/runtime-configuration.md", text: formatReference(runtimeDefinition) },
  { path: "docs/reference/gate-configuration.md", text: formatReference(gateDefinition) },
];

const isCheck = process.argv.includes("--check");
for (const { path, text } of pages) {
  if (!isCheck) {
    mkdirSync("docs/reference", { recursive: true });
    writeFileSync(path, text);
  } else if (readFileSync(path, "utf8") !== text) {
    console.error(`${path} is out of date: run node tools/write-reference.ts`);
    process.exitCode = 1;
  }
}
