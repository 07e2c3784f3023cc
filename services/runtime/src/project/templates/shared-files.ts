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

/** package.json, .gitignore, the launchers and a README with the commands, and \`trials\` as what to try next. */
export function createSharedFiles(
  name: string,
  trials: readonly string[],
): Readonly<Record<string, string>> {
  const manifest = { name, version: "0.1.0", private: true, type: "module", scripts: SCRIPTS };
  return {
    ...LAUNCHERS,
    "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
    ".gitignore": "/data/\n/dist/\nnode_modules/\n",
    "README.md": `# ${name}

\`\`\`
./platform run --watch     run, again after each change
./platform check           find errors
./platform test            run the tests
./platform build           write one executable
${trials.join("\n")}
\`\`\`
`,
  };
}
