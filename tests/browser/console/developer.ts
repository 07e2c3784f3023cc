// The platform of `projects.test.ts` with a project and its database, and the looks of its pages.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, type TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, findFreePort } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import { goTo, HOSTILE, openPlatform, type ConsolePage, type Look } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const PROJECT = `import { HttpError } from "@platform/service";
server { port: 3000 }
export route GET /greeting () { return "hello" }
export route GET /broken ({ log }) {
  log.warn("about to break", { step: 2 });
  throw new Error("the shelf is empty");
}
`;
/** The looks in which each page is checked, and the language of each. */
export const PAGE_LOOKS: readonly (Look & { language: "en" | "de" })[] = [
  { name: "light, 1440 px", width: 1440, height: 900, colorScheme: "light", language: "en" },
  { name: "light, 1280 px", width: 1280, height: 900, colorScheme: "light", language: "en" },
  { name: "dark, 1024 px", width: 1024, height: 800, colorScheme: "dark", language: "de" },
  { name: "dark, 390 px", width: 390, height: 844, colorScheme: "dark", language: "en" },
  { name: "light, 390 px", width: 390, height: 844, colorScheme: "light", language: "de" },
];

/** The installation, once it runs. */
export const developer = {} as { platform: Platform; browser: Browser; project: string };

/** Starts it before the tests of a module, and prepares what they need. */
export function useDeveloper(prepare?: () => void | Promise<void>): void {
  before(async () => {
    if (chromiumSkip !== false) return;
    const environment = { PLATFORM_NOTIFY_INBOUND_PORT: String(await findFreePort()) };
    const installation = await joinInstallation({ project: PROJECT, environment });
    Object.assign(developer, installation, { project: "shop" });
    await prepare?.();
  });
}

let items: { file: string } | undefined;

/** Fills the project's database `items` once: 400 people, of which one has orders; and a query of the project. */
export function fillItems(): { file: string } {
  if (items !== undefined) return items;
  const { platform, project } = developer;
  const folder = join(platform.dataDir, "projects", project);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "items.sqlite");
  const database = new DatabaseSync(file);
  database.exec(`pragma journal_mode = wal;
    create table people(id integer primary key, email text not null, name text, notes text, password_hash text, big integer);
    create table orders(id integer primary key, person integer not null references people(id) on delete cascade, total real);
    create table loose(word text);
    create view adults as select * from people;`);
  const insert = database.prepare("insert into people values (?, ?, ?, ?, ?, ?)");
  for (let id = 1; id <= 400; id += 1) {
    const json = JSON.stringify({ plan: "team", tags: ["a", "b"] });
    const notes = id === 7 ? json : id % 3 === 0 ? null : "";
    const name = id === 8 ? HOSTILE : `Person ${id}`;
    insert.run(id, `p${id}@example.com`, name, notes, `h${id}`, 9007199254740993n);
  }
  database.exec("insert into orders values (1, 7, 12.5), (2, 7, 3)");
  database.close();
  return (items = { file });
}

/** Opens a page of the console in one look, in its language. */
export async function openIn(
  t: Pick<TestContext, "after">,
  look: Look & { language?: "en" | "de" },
  path: string,
): Promise<ConsolePage> {
  const { browser, platform } = developer;
  if (look.language !== "de") return await openPlatform(t, browser, platform, look, path);
  const opened = await openPlatform(t, browser, platform, look);
  const { page } = opened;
  await page.evaluate(
    'localStorage.setItem("platform.console", JSON.stringify({ language: "de" }))',
  );
  await page.goto(`${platform.console.origin}/ui${path}`);
  await page.locator("html[lang=de] main#content.body").waitFor();
  await goTo(opened, path);
  return opened;
}
