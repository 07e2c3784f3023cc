// The two ways to do a task: by mouse, with clicks counted, and by keyboard alone.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../../identity/platform.ts";
import {
  checkPage,
  openConsole,
  openPlatform,
  readClicks,
  type ConsolePage,
  type Look,
} from "../chromium.ts";

/** Appearances: mouse and keyboard together cover both themes at both widths. */
const MOUSE_LOOKS: readonly Look[] = [
  { name: "light, 1440 px", width: 1440, height: 900, colorScheme: "light" },
  { name: "dark, 390 px", width: 390, height: 844, colorScheme: "dark" },
];
const KEYBOARD_LOOKS: readonly Look[] = [
  { name: "dark, 1440 px", width: 1440, height: 900, colorScheme: "dark" },
  { name: "light, 390 px", width: 390, height: 844, colorScheme: "light" },
];
const PHONE_PX = 760;
/** Steps from one end of a page to any of its controls. */
const TABS_MAX = 120;

/** A task of the design page. */
export interface Task {
  name: string;
  /** Clicks from the overview, signed in; on phones one more for what the bar's menu contains. */
  clicks: number;
  /** Does it with the mouse; the clicks are counted. */
  byMouse: (hand: Mouse) => Promise<void>;
  /** Does it with keys alone. */
  byKeyboard: (hand: Keyboard) => Promise<void>;
  /** Undoes it, so that it can be done again. */
  after?: () => Promise<void>;
}

/** Opens the console in one mode at its overview, signed in. */
export type Opener = (t: TestContext, look: Look) => Promise<ConsolePage>;

/** Opens the platform's console. */
export function onPlatform(browser: () => Browser, platform: () => Platform): Opener {
  return (t, look) => openPlatform(t, browser(), platform(), look, "/");
}

/** Opens the page of one service. */
export function alone(
  browser: () => Browser,
  service: () => { url: string; token: string; accessKey?: string },
): Opener {
  return (t, look) => openConsole(t, browser(), { ...service(), look });
}

/** Tests of a task in one mode: both hands, both themes, both widths, accessible at its end. */
export function testTask(mode: string, open: Opener, task: Task): void {
  for (const look of MOUSE_LOOKS) {
    const isPhone = look.width < PHONE_PX;
    const name = `${task.name}: ${task.clicks} clicks, ${mode}, ${look.name}`;
    test(name, { skip: chromiumSkip }, async (t) => {
      const opened = await open(t, look);
      await opened.page.evaluate("globalThis.clicks = 0");
      await task.byMouse(new Mouse(opened, isPhone));
      const clicks = await readClicks(opened);
      const most = task.clicks + (isPhone && task.clicks > 0 ? 1 : 0);
      assert.ok(clicks <= most, `${clicks} clicks, ${most} are allowed`);
      assert.equal(clicks > 0, task.clicks > 0, "clicks are counted");
      await checkPage(opened, name);
      await task.after?.();
    });
  }
  for (const look of KEYBOARD_LOOKS) {
    const name = `${task.name}: keyboard, ${mode}, ${look.name}`;
    test(name, { skip: chromiumSkip }, async (t) => {
      const opened = await open(t, look);
      await opened.page.evaluate("globalThis.clicks = 0");
      await task.byKeyboard(new Keyboard(opened));
      assert.equal(await readClicks(opened), 0, "no click");
      await checkPage(opened, name);
      await task.after?.();
    });
  }
}

/** A hand on the mouse; the other one types text. */
export class Mouse {
  readonly page: Page;
  readonly isPhone: boolean;

  constructor({ page }: ConsolePage, isPhone: boolean) {
    this.page = page;
    this.isPhone = isPhone;
  }

  /** Opens a service, or one of its sections: two clicks if it is not the first one. */
  async openArea(area: string, section?: string): Promise<void> {
    const name = { name: area, exact: true };
    if (!this.isPhone) {
      const rail = this.page.locator("nav.rail");
      await rail.locator(".nav a").filter({ hasText: area }).first().click();
      if (section !== undefined) await rail.getByRole("link", { name: section }).click();
      return;
    }
    const bar = this.page.locator("nav.phone-bar");
    const own = bar.locator("> a").filter({ hasText: area });
    if (section === undefined && (await own.count()) > 0) {
      await own.click();
      return;
    }
    await bar.getByRole("button", { name: "More" }).click();
    const menu = bar.locator(".more-menu");
    const group = menu.locator("> div").filter({ has: this.page.locator("b", { hasText: area }) });
    if ((await group.count()) === 0) await menu.getByRole("link", name).click();
    else if (section === undefined) await group.getByRole("link").first().click();
    else await group.getByRole("link", { name: section }).click();
  }
}

/** Keys alone. */
export class Keyboard {
  readonly page: Page;

  constructor({ page }: ConsolePage) {
    this.page = page;
  }

  /** Presses keys one after another. */
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** Types a text. */
  async type(text: string): Promise<void> {
    await this.page.keyboard.insertText(text);
  }

  /** Opens what the palette finds first for a text. */
  async find(text: string, option: string | RegExp = text): Promise<void> {
    await this.press("Control+k");
    await this.type(text);
    const list = this.page.getByRole("option", { name: option });
    await list.first().waitFor();
    const at = await this.page
      .getByRole("option")
      .evaluateAll(
        (options, wanted) =>
          options.findIndex((one) => new RegExp(wanted, "i").test(one.textContent ?? "")),
        typeof option === "string"
          ? option.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
          : option.source,
      );
    for (let n = 0; n < at; n += 1) await this.press("ArrowDown");
    await this.press("Enter");
  }

  /** Moves the focus to a row of the list by `j`. */
  async moveToRow(row: Locator): Promise<void> {
    await row.first().waitFor();
    for (let n = 0; n < TABS_MAX; n += 1) {
      if (await isFocused(row)) return;
      await this.press("j");
    }
    assert.fail("the row cannot be reached");
  }

  /** Moves the focus to a control by Tab, or back to it. */
  async tabTo(target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
    await target.first().waitFor();
    for (let n = 0; n < TABS_MAX; n += 1) {
      if (await isFocused(target)) return;
      await this.press(key);
    }
    assert.fail("the control cannot be reached");
  }
}

async function isFocused(target: Locator): Promise<boolean> {
  return await target.evaluateAll((elements) =>
    elements.some((one) => one.contains(one.ownerDocument.activeElement)),
  );
}
