// Files that all templates have.

/** package.json, .gitignore and a README with the commands, and `trials` as what to try next. */
export function createSharedFiles(
  name: string,
  trials: readonly string[],
): Readonly<Record<string, string>> {
  return {
    "package.json": `${JSON.stringify({ name, version: "0.1.0", private: true, type: "module" }, null, 2)}\n`,
    ".gitignore": "/data/\n/dist/\nnode_modules/\n",
    "README.md": `# ${name}

\`\`\`
npx platform run --watch    run, again after each change
npx platform check          find errors
npx platform test           run the tests
npx platform build          write one executable
${trials.join("\n")}
\`\`\`
`,
  };
}
