// `npm run build:editors [-- --out FOLDER]`: writes the extension for Visual Studio Code, without a network.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { loadBundler } from "../services/runtime/src/build/bundler.ts";
import { createZip } from "./zip.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SOURCE = join(ROOT, "editors/vscode");
/** Files of the extension that are copied. */
const COPIED = [
  "README.md",
  "language-configuration.json",
  "snippets/service.json",
  "syntaxes/service.tmLanguage.json",
];

/** The parts of the manifest that are read. */
interface Manifest {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly publisher: string;
  readonly categories: readonly string[];
  readonly engines: { readonly vscode: string };
  readonly extensionKind: readonly string[];
}

const { values } = parseArgs({
  options: { out: { type: "string", default: join(ROOT, "dist/editors") } },
});
const { version } = readJson(join(ROOT, "package.json")) as { version: string };
const manifest = readJson(join(SOURCE, "manifest.json")) as Manifest;
const { code, notices } = await bundle();
const files = new Map<string, Uint8Array>([
  ["extension.vsixmanifest", Buffer.from(describe(manifest, version))],
  ["[Content_Types].xml", Buffer.from(formatContentTypes())],
  ["extension/package.json", Buffer.from(`${JSON.stringify({ ...manifest, version }, null, 2)}\n`)],
  ["extension/extension.js", Buffer.from(code)],
  ["extension/LICENSE.txt", readFileSync(join(ROOT, "LICENSE"))],
  ["extension/NOTICES.txt", Buffer.from(notices)],
  ...COPIED.map((path): [string, Uint8Array] => [
    `extension/${path}`,
    readFileSync(join(SOURCE, path)),
  ]),
]);
const bytes = createZip(files);
const path = join(values.out, `${manifest.name}-${version}.vsix`);
mkdirSync(values.out, { recursive: true });
writeFileSync(path, bytes);
console.log(`Written: ${path} (${Math.ceil(bytes.length / 1_000)} KB)`);

/** The client with the packages that it imports, as the one script that the editor loads; and their licenses. */
async function bundle(): Promise<{ code: string; notices: string }> {
  const { rolldown } = await loadBundler();
  await using bundler = await rolldown({
    input: join(SOURCE, "src/extension.ts"),
    platform: "node",
    external: ["vscode"],
    logLevel: "silent",
  });
  const { output } = await bundler.generate({
    format: "cjs",
    codeSplitting: false,
    comments: false,
    minify: true,
  });
  const [chunk] = output;
  const folders = new Set(
    chunk.moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
  );
  const texts = [...folders].toSorted().map((folder) => {
    const { name, license } = readJson(join(folder, "package.json")) as Record<string, string>;
    return `${name} (${license})\n\n${readLicense(folder)}`;
  });
  return { code: chunk.code, notices: `${texts.join("\n\n---\n\n")}\n` };
}

function readLicense(folder: string): string {
  for (const name of ["LICENSE", "License.txt", "LICENSE.md"]) {
    try {
      return readFileSync(join(folder, name), "utf8").trim();
    } catch {
      // Another name.
    }
  }
  throw new Error(`${basename(folder)} has no license file`);
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, "utf8"));
}

/** The manifest of the archive, which the editor's installer reads. */
function describe(extension: Manifest, number: string): string {
  const { name, displayName, description, publisher, categories, engines, extensionKind } =
    extension;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${name}" Version="${number}" Publisher="${publisher}" />
    <DisplayName>${escape(displayName)}</DisplayName>
    <Description xml:space="preserve">${escape(description)}</Description>
    <Categories>${escape(categories.join(","))}</Categories>
    <License>extension/LICENSE.txt</License>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${escape(engines.vscode)}" />
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="${escape(extensionKind.join(","))}" />
    </Properties>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code" />
  </Installation>
  <Dependencies />
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true" />
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true" />
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true" />
  </Assets>
</PackageManifest>
`;
}

function formatContentTypes(): string {
  const types = {
    vsixmanifest: "text/xml",
    json: "application/json",
    js: "application/javascript",
    md: "text/markdown",
    txt: "text/plain",
  };
  const lines = Object.entries(types).map(
    ([ending, type]) => `  <Default Extension=".${ending}" ContentType="${type}" />`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
${lines.join("\n")}
</Types>
`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
