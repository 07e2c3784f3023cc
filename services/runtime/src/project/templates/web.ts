// The template `web`: a page with static files and sign-in.
import { createSharedFiles } from "./shared-files.ts";

/** Files by path. */
export function createWebTemplate(name: string): Readonly<Record<string, string>> {
  return {
    ...createSharedFiles(name, [
      "./platform up              run with the platform: sign-in works at the address that it prints",
      "open http://localhost:3000",
    ]),
    "main.service.ts": `import { auth, files } from "@platform/service";

server { port: 3000 }

const pages = files(new URL("./public", import.meta.url));

export route GET /* (req) { return pages(req); }

export route GET /sign-in { return auth.signIn(); }
export route GET /callback (req) { return auth.finishSignIn(req); }
export route POST /sign-out (req) {
  await auth.requireUser(req);
  return auth.signOut();
}

export route GET /api/me (req) {
  // \`platform up\` runs identity and creates a client for this service.
  const user = auth.isConfigured ? await auth.user(req) : undefined;
  return { hasIdentity: auth.isConfigured, name: user?.name ?? null };
}
`,
    "public/index.html": `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${name}</title>
    <link rel="stylesheet" href="/style.css" />
    <script type="module" src="/app.js"></script>
  </head>
  <body>
    <main>
      <h1>${name}</h1>
      <p id="greeting" aria-live="polite"></p>
      <a id="in" href="/sign-in" hidden>Sign in</a>
      <form id="out" method="post" action="/sign-out" hidden><button>Sign out</button></form>
    </main>
  </body>
</html>
`,
    "public/app.js": `const { hasIdentity, name } = await (await fetch("/api/me")).json();

document.querySelector("#greeting").textContent =
  name !== null
    ? \`Hello, \${name}.\`
    : hasIdentity
      ? "You are not signed in."
      : "Start it with ./platform up to sign in.";
document.querySelector("#in").hidden = !hasIdentity || name !== null;
document.querySelector("#out").hidden = name === null;
`,
    "public/style.css": `:root {
  color-scheme: light dark;
  font-family: system-ui, sans-serif;
}

main {
  max-width: 40rem;
  margin: 4rem auto;
  padding: 0 1rem;
}
`,
    "main.test.ts": `import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTestService } from "@platform/service/testing";
import "./main.service.ts";

const app = await startTestService({ fakes: true });
after(() => app.stop());

test("the page and its files are served", async () => {
  const page = await app.fetch("/");
  assert.match(await page.text(), /<title>${name}<\\/title>/);
  for (const path of ["/app.js", "/style.css"]) {
    assert.equal((await app.fetch(path)).status, 200, path);
  }
  assert.equal((await app.fetch("/none")).status, 404);
});

test("a person who has signed in is greeted, and a visitor is not", async () => {
  const answer = await app.as({ id: "1", name: "Ada" }).fetch("/api/me");
  assert.deepEqual(await answer.json(), { hasIdentity: true, name: "Ada" });
  assert.deepEqual(await (await app.fetch("/api/me")).json(), { hasIdentity: true, name: null });
});
`,
  };
}
