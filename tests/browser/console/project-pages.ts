// Projects and their data in Chromium: tables, a row found by its email, a changed cell, statements, and every look.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { Browser } from "playwright-core";
import { waitFor } from "@platform/testing/wait";
import { chromiumSkip } from "@platform/kernel/testing";
import { ADA, type Platform } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  openAt,
  openPlatform,
  readClicks,
  signInAtIdentity,
  takePicture,
  type ConsolePage,
  type Look,
} from "./chromium.ts";
import { developer, fillItems, useDeveloper } from "./developer.ts";

const LOOKS: readonly Look[] = [
  { name: "light, 1440 px", width: 1440, height: 900, colorScheme: "light" },
  { name: "light, 1280 px", width: 1280, height: 900, colorScheme: "light" },
  { name: "dark, 1024 px", width: 1024, height: 800, colorScheme: "dark" },
  { name: "dark, 390 px", width: 390, height: 844, colorScheme: "dark" },
];
const GERMAN = `localStorage.setItem("platform.console", JSON.stringify({ language: "de" }))`;

let platform: Platform;
let browser: Browser;
let project: string;
let base: string;
let file: string;

useDeveloper(() => {
  ({ platform, browser, project } = developer);
  base = `/projects/${project}/data/items`;
  ({ file } = fillItems());
});

function readPerson(id: number): Record<string, unknown> {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const statement = database.prepare("select id, email, name from people where id = ?");
    return { ...statement.get(id) };
  } finally {
    database.close();
  }
}

/** Changes a row as another person does. */
async function changePerson(id: number, set: object): Promise<void> {
  const path = `/api/v1/projects/${project}/databases/items/tables/people/rows`;
  const answer = await fetch(new URL(path, platform.runtime), {
    method: "PATCH",
    headers: {
      authorization: `Bearer ${platform.readCredential("PLATFORM_RUNTIME_TOKEN")}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ key: { id }, set }),
  });
  assert.equal(answer.status, 200, await answer.text());
}

for (const look of LOOKS) {
  test(
    `each page is accessible and within its window: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const console = await openPlatform(t, browser, platform, look);
      const { page } = console;
      if (look.width === 1024) {
        await page.evaluate(GERMAN);
        await page.reload();
        await page.locator("html[lang=de] main#content.body").waitFor();
      }
      const row = encodeURIComponent("[7]");
      const paths = [
        ["projects", "/projects"],
        ["project", `/projects/${project}`],
        ["tables", base],
        ["table", `${base}/people`],
        ["row", `${base}/people?row=${row}`],
        ["view", `${base}/adults?sort=-id`],
        [
          "sql",
          `/projects/${project}/sql/items?sql=${encodeURIComponent("select * from people where id < :max")}`,
        ],
        ["audit", `/projects/${project}/audit/items`],
        ["environment", `/projects/${project}/environment`],
      ] as const;
      for (const [name, path] of paths) {
        await goTo(console, path);
        await checkPage(console, `${path} ${look.name}`);
        await takePicture(console, `projects-${name}-${look.width}-${look.colorScheme}`);
      }
      await page.evaluate("localStorage.clear()");
    },
  );
}

/** Opens the overview, as after the sign-in. */
async function start(t: Parameters<typeof openPlatform>[0]): Promise<ConsolePage> {
  const console = await openPlatform(t, browser, platform);
  await goTo(console, "/");
  await console.page.evaluate("globalThis.clicks = 0");
  return console;
}

test(
  "a row is found by its email, and a cell is changed and undone by a conflict",
  { skip: chromiumSkip },
  async (t) => {
    const console = await start(t);
    const { page } = console;
    await page.getByRole("navigation", { name: "Console" }).getByText("Projects").click();
    await page.getByRole("link", { name: project, exact: true }).click();
    await page.getByRole("link", { name: "items", exact: true }).click();
    await page.getByRole("link", { name: "people", exact: true }).click();
    await page.getByText("200 rows on this page").waitFor();
    await page.getByLabel("Column", { exact: true }).selectOption("email");
    await page.getByLabel("Value").fill("p7@example.com");
    await page.getByLabel("Value").press("Enter");
    const row = page.locator(".data-grid tr[data-row]");
    await page.getByText("1 row on this page").waitFor();
    assert.ok((await readClicks(console)) <= 5);
    await row.click();
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText('"team"').waitFor();
    await pane.getByRole("link", { name: "orders.person" }).waitFor();
    assert.match(await pane.innerText(), /9007199254740993/);
    await page.getByRole("button", { name: "Unlock" }).click();
    await pane.getByRole("button", { name: "Change…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^name/).fill("New name");
    await checkPage(console, "change the row");
    await takePicture(console, "projects-change");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("The row was changed.").waitFor();
    assert.deepEqual(
      [readPerson(7)["name"], readPerson(7)["email"]],
      ["New name", "p7@example.com"],
    );

    await pane.getByRole("button", { name: "Change…" }).click();
    await changePerson(7, { email: "other@example.com" });
    await dialog.getByLabel(/^name/).fill("Late name");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText(/has changed this row/).waitFor();
    assert.equal(readPerson(7)["name"], "New name");
    await dialog.getByRole("button", { name: "Cancel" }).click();

    await goTo(console, `${base}/people?row=${encodeURIComponent("[7]")}`);
    await pane.getByRole("button", { name: "Delete…" }).click();
    await dialog.getByText("2 other rows change or fall with it").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("The row was deleted.").waitFor();
    assert.deepEqual(readPerson(7), {});
  },
);

test(
  "projects are found by name, and a locked cell says how it is unlocked",
  { skip: chromiumSkip },
  async (t) => {
    const console = await start(t);
    const { page } = console;
    await page.keyboard.press("Control+k");
    await page.keyboard.type(project);
    await page.getByRole("option", { name: new RegExp(`^${project}\\s*project$`) }).click();
    await page.getByRole("link", { name: "SQL", exact: true }).click();
    await page.getByText("Statements can only read here").waitFor();
    await page.getByRole("link", { name: "Tables", exact: true }).click();
    await page.getByRole("link", { name: "people", exact: true }).click();
    await page.locator(`.data-grid tr[data-row="[30]"] td:nth-child(3)`).dblclick();
    await page.getByText("The rows are locked").waitFor();
    assert.equal(await page.evaluate("getSelection().toString()"), "");
  },
);

test(
  "a cell is edited in its place by mouse and by keyboard, and widths of columns stay",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform, undefined, `${base}/people`);
    const { page } = console;
    await page.getByRole("button", { name: "Unlock" }).click();
    await page.evaluate("globalThis.clicks = 0");
    const cellOf = (id: number, column: number) =>
      page.locator(`.data-grid tr[data-row="[${id}]"] td:nth-child(${column})`);
    const field = page.getByLabel(/^New value of/);
    await cellOf(20, 3).dblclick();
    await field.fill("By mouse");
    await checkPage(console, "a cell that is edited");
    await takePicture(console, "projects-cell");
    await field.press("Enter");
    await cellOf(20, 3).filter({ hasText: "By mouse" }).waitFor();
    await field.waitFor({ state: "detached" });
    assert.equal(readPerson(20)["name"], "By mouse");
    assert.ok((await readClicks(console)) <= 4);

    // From the row by the arrow keys; Tab saves and goes on, Escape keeps the value.
    await page.locator('.data-grid tr[data-row="[21]"]').focus();
    for (const key of ["ArrowRight", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    await page.keyboard.type("k21@example.com");
    await page.keyboard.press("Tab");
    await page.getByLabel("New value of name").waitFor();
    await page.keyboard.type("not kept");
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "detached" });
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("F2");
    await page.getByLabel("New value of email").waitFor();
    await page.keyboard.press("Escape");
    assert.deepEqual(readPerson(21), { id: 21, email: "k21@example.com", name: "Person 21" });

    // Another person changes the row meanwhile: the cell stays open.
    await cellOf(22, 3).dblclick();
    await changePerson(22, { email: "meanwhile@example.com" });
    await field.fill("late");
    await field.press("Enter");
    await page.getByText(/has changed this row/).waitFor();
    assert.equal(readPerson(22)["name"], "Person 22");
    await field.press("Escape");

    const head = page.locator(".data-grid th", { hasText: "email" });
    await head.getByRole("button").press("Shift+ArrowRight");
    const wide = (await head.boundingBox())!.width;
    const edge = (await head.locator(".width-handle").boundingBox())!;
    await page.mouse.move(edge.x + 3, edge.y + 5);
    await page.mouse.down();
    await page.mouse.move(edge.x + 103, edge.y + 5);
    await page.mouse.up();
    const drawn = (await head.boundingBox())!.width;
    assert.ok(Math.abs(drawn - wide - 100) < 3, `${wide} px, then ${drawn} px`);
    await page.reload();
    await cellOf(20, 3).waitFor();
    assert.equal((await head.boundingBox())!.width, drawn);
    await page.evaluate("localStorage.clear()");
  },
);

test(
  "a secret is set for a project, and a restart is offered",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(
      t,
      browser,
      platform,
      undefined,
      `/projects/${project}/environment`,
    );
    const { page } = console;
    await page.getByRole("button", { name: "Set a variable…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("OIDC_ISSUER");
    await dialog.getByLabel("Value").fill("hunter2");
    await dialog.getByRole("button", { name: "Set", exact: true }).click();
    await dialog.getByText("The platform sets OIDC_ISSUER for its projects.").waitFor();
    await dialog.getByLabel("Name").fill("API_KEY");
    await checkPage(console, "a variable");
    await dialog.getByRole("button", { name: "Set", exact: true }).click();
    await page.getByText("The project runs with earlier variables.").waitFor();
    const row = page.locator("main tr", { hasText: "API_KEY" });
    await row.getByText("secret", { exact: true }).waitFor();
    assert.ok(!(await page.content()).includes("hunter2"));
    await checkPage(console, "variables of a project");
    await takePicture(console, "projects-variables");
    await page.getByRole("button", { name: "Restart it" }).click();
    await page.getByText("The project runs with earlier variables.").waitFor({ state: "detached" });
    await row.getByRole("button", { name: "Remove API_KEY" }).click();
    await row.waitFor({ state: "detached" });
  },
);

test("a right to one project shows that project alone", { skip: chromiumSkip }, async (t) => {
  const { user, access_token: token } = (await platform.signIn(ADA)) as never as {
    user: { id: string };
    access_token: string;
  };
  assert.equal((await listProjects(token)).status, 403);
  const give = async (permissions: string[]): Promise<void> => {
    const roles = { roles: ["one-project"] };
    const to = `/api/v1/rbac/users/${user.id}/roles`;
    await platform.identity("DELETE", to, roles, platform.admin).catch(() => undefined);
    const path = "/api/v1/rbac/roles/one-project";
    await platform.identity("DELETE", path, undefined, platform.admin).catch(() => undefined);
    const role = { name: "one-project", permissions };
    await platform.identity("POST", "/api/v1/rbac/roles", role, platform.admin);
    await platform.identity("POST", to, roles, platform.admin);
    // Identity follows new scopes within a second.
    const place = new URL("/.well-known/openid-configuration", platform.auth);
    await waitFor(async () => (await (await fetch(place)).text()).includes(permissions[0]!));
  };
  const open = async () => {
    const opened = await openAt(t, browser, `${platform.console.origin}/ui/projects`);
    await signInAtIdentity(opened.page, ADA);
    return opened;
  };
  await give([`data:read:${project}`]);
  const own = await open();
  await own.page.getByRole("link", { name: project, exact: true }).click();
  await own.page.getByRole("link", { name: "items", exact: true }).click();
  await own.page.getByRole("link", { name: "people", exact: true }).click();
  await own.page.getByText("200 rows on this page").waitFor();
  const unlock = own.page.getByRole("button", { name: "Unlock" });
  assert.equal(await unlock.getAttribute("aria-disabled"), "true");
  await checkPage(own, "a table for its reader");
  await own.page.getByRole("link", { name: "SQL", exact: true }).click();
  await own.page.getByLabel("Statement").fill("select 1");
  const run = own.page.getByRole("button", { name: "Run" });
  assert.equal(await run.getAttribute("aria-disabled"), "true");

  await give(["data:read:another-one"]);
  const other = await open();
  await other.page.getByText("No project runs").waitFor();
  await goTo(other, `${base}/people`);
  await other.page.getByText("Not permitted").first().waitFor();
});

async function listProjects(token: string): Promise<Response> {
  return fetch(new URL("/api/v1/projects", platform.runtime), {
    headers: { authorization: `Bearer ${token}` },
  });
}

test(
  "a statement is run, a change is counted and confirmed, and both are in the audit log",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(
      t,
      browser,
      platform,
      undefined,
      `/projects/${project}/sql/items`,
    );
    const { page } = console;
    await page.getByLabel("Statement").fill("select id, big from people where id = :id");
    await page.getByLabel(":id").fill("9");
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator(".data-grid td").filter({ hasText: "9007199254740993" }).waitFor();
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.getByText(/SEARCH people/).waitFor();
    await page.getByLabel("Statement").fill("select id,\n  nane from people");
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator(".sql-fault", { hasText: /^nane$/ }).waitFor();
    await page.getByRole("button", { name: "Line 2, column 3" }).click();
    await page.keyboard.type("name");
    await page.locator(".sql-fault").waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("Statement").inputValue(), "select id,\n  name from people");
    await page.getByLabel("Statement").fill("alter table people add column age integer");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/migrations\/\d+-alter-table-people-add-column-age\.sql/).waitFor();
    await page.getByText("alter table people add column age integer;", { exact: true }).waitFor();
    await checkPage(console, "a migration to copy");
    await takePicture(console, "projects-migration");
    const change = "update people set name = 'x' where id in (10, 11)";
    await page.getByLabel("Statement").fill(change);
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/Only SELECT|Only reading/).waitFor();
    await page.getByRole("button", { name: "Unlock" }).click();
    await page.getByRole("button", { name: "Count the rows" }).click();
    await page.getByText(/It changes 2 rows/).waitFor();
    assert.equal(readPerson(10)["name"], "Person 10");
    await page.getByRole("button", { name: "Change 2 rows" }).click();
    await page.getByText("2 rows are changed.").waitFor();
    assert.equal(readPerson(10)["name"], "x");
    await page
      .getByLabel("Statement")
      .fill(
        "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n",
      );
    await page.getByRole("button", { name: "Lock", exact: true }).click();
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("button", { name: "Stop the statement" }).click();
    await page.getByRole("button", { name: "Run" }).waitFor();
    await goTo(console, `/projects/${project}/audit/items`);
    await page.getByText("update people set name = ? where id in (?, ?)").first().waitFor();
    await page.getByText(/The chain of \d+ entries is intact/).waitFor();
  },
);
