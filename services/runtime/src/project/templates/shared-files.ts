// Files that all templates have.

/** Starts the installed program. It never asks a registry for one of this name, as npx would. */
const SCRIPT = `#!/bin/sh
# The platform's command line, as it is installed in this project.
program=$(dirname "$0")/node_modules/.bin/platform
if [ ! -e "$program" ]; then
  echo 'platform: it is not installed in this project: run "npm ci" in this folder, or "platform init ." of an installation' >&2
  exit 1
fi
exec "$program" "$@"
`;
const SCRIPT_OF_WINDOWS = `@echo off
rem The platform's command line, as it is installed in this project.
if not exist "%~dp0node_modules\\.bin\\platform" (
  echo platform: it is not installed in this project: run "npm ci" in this folder, or "platform init ." of an installation 1>&2
  exit /b 1
)
node "%~dp0node_modules\\.bin\\platform" %*
`.replaceAll("\n", "\r\n");

/** The executable scripts by which a project starts the platform, by name. */
export const LAUNCHERS: Readonly<Record<string, string>> = {
  platform: SCRIPT,
  "platform.cmd": SCRIPT_OF_WINDOWS,
};

const SCRIPTS = {
  dev: "platform run --watch",
  check: "platform check",
  test: "platform test",
  build: "platform build",
};

/** Stock TypeScript finds the types that the package brings, also before npm has installed them. */
const CONFIG = {
  compilerOptions: {
    target: "esnext",
    lib: ["esnext"],
    module: "nodenext",
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    resolveJsonModule: true,
    types: ["node"],
    typeRoots: ["node_modules/@types", "node_modules/@platform/service/node_modules/@types"],
  },
  exclude: ["node_modules", "dist", "data"],
};

/** Editors open service files by their language, not as TypeScript. */
export const LANGUAGE_FILES: Readonly<Record<string, string>> = {
  ".vscode/settings.json": formatJson({
    "files.associations": { "*.service.ts": "platform-service" },
  }),
};

function formatJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** package.json, tsconfig.json, .gitignore, the launchers and a README with the commands, and \`trials\` as what to try next. */
export function createSharedFiles(
  name: string,
  trials: readonly string[],
): Readonly<Record<string, string>> {
  const manifest = { name, version: "0.1.0", private: true, type: "module", scripts: SCRIPTS };
  return {
    ...LAUNCHERS,
    "package.json": formatJson(manifest),
    "tsconfig.json": formatJson(CONFIG),
    ".gitignore": "/data/\n/dist/\nnode_modules/\n",
    "README.md": `# ${name}

\`\`\`
./platform run --watch     run alone, again after each change
./platform check           find errors
./platform test            run the tests
./platform build           write one executable
${trials.join("\n")}
\`\`\`
`,
  };
}
