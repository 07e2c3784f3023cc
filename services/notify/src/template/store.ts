// Templates in the database: variants by language, with all of their versions.
import { isUniqueViolation } from "@platform/kernel/db";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { NotifyDatabase } from "../database/schema.ts";
import type { TemplateVersionRow } from "../database/template.ts";

/** Content of a template. */
export interface TemplateContent {
  subject: string;
  html: string | null;
  text: string | null;
}

/** A variant with its active version. */
export type StoredTemplate = TemplateVersionRow & { updated_at: number };

const VERSIONS_MAX = 50;

/** The template store. */
export class TemplateStore {
  readonly #database: NotifyDatabase;
  readonly #clock: Clock;

  constructor(database: NotifyDatabase, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Adds a version of a variant and activates it; returns its number. The oldest versions are deleted. Throws
   * `precondition_failed` if the active version is another one than the expected; 0 expects none.
   */
  async save(
    name: string,
    locale: string,
    content: TemplateContent,
    expectedVersion?: number,
  ): Promise<number> {
    try {
      return await this.#save(name, locale, content, expectedVersion);
    } catch (error) {
      // Another node saved the version at the same time.
      if (expectedVersion === undefined || !isUniqueViolation(error)) throw error;
      throw createConflict(undefined);
    }
  }

  async #save(
    name: string,
    locale: string,
    content: TemplateContent,
    expectedVersion: number | undefined,
  ): Promise<number> {
    const nowMs = this.#clock.now();
    return this.#database.transaction(async (trx) => {
      const last = await trx
        .selectFrom("notify_template_versions")
        .select((eb) => eb.fn.max("version").as("version"))
        .where("name", "=", name)
        .where("locale", "=", locale)
        .executeTakeFirst();
      const active = last?.version ?? 0;
      if (expectedVersion !== undefined && expectedVersion !== active) throw createConflict(active);
      const version = active + 1;
      await trx
        .insertInto("notify_template_versions")
        .values({ name, locale, version, ...content, created_at: nowMs })
        .execute();
      await trx
        .insertInto("notify_templates")
        .values({ name, locale, version, updated_at: nowMs })
        .onConflict((conflict) =>
          conflict.columns(["name", "locale"]).doUpdateSet({ version, updated_at: nowMs }),
        )
        .execute();
      await trx
        .deleteFrom("notify_template_versions")
        .where("name", "=", name)
        .where("locale", "=", locale)
        .where("version", "<=", version - VERSIONS_MAX)
        .execute();
      return version;
    });
  }

  /** Returns the active versions of all variants of these templates. */
  async read(names: readonly string[]): Promise<StoredTemplate[]> {
    if (names.length === 0) return [];
    return this.#active().where("notify_templates.name", "in", names).execute();
  }

  /** Returns a page of variants in the order of names; `after` is `name` and locale, joined by a line break. */
  async list(limit: number, after: string | undefined): Promise<StoredTemplate[]> {
    const [name = "", locale = ""] = (after ?? "").split("\n");
    let query = this.#active();
    if (after !== undefined) {
      query = query.where((eb) =>
        eb.or([
          eb("notify_templates.name", ">", name),
          eb.and([
            eb("notify_templates.name", "=", name),
            eb("notify_templates.locale", ">", locale),
          ]),
        ]),
      );
    }
    return query
      .orderBy("notify_templates.name")
      .orderBy("notify_templates.locale")
      .limit(limit)
      .execute();
  }

  /** Returns the versions of a variant without their contents, newest first. */
  async listVersions(
    name: string,
    locale: string,
  ): Promise<Pick<TemplateVersionRow, "version" | "subject" | "created_at">[]> {
    return this.#database.db
      .selectFrom("notify_template_versions")
      .select(["version", "subject", "created_at"])
      .where("name", "=", name)
      .where("locale", "=", locale)
      .orderBy("version", "desc")
      .execute();
  }

  /** Returns a version of a variant. */
  async readVersion(
    name: string,
    locale: string,
    version: number,
  ): Promise<TemplateVersionRow | undefined> {
    return this.#database.db
      .selectFrom("notify_template_versions")
      .selectAll()
      .where("name", "=", name)
      .where("locale", "=", locale)
      .where("version", "=", version)
      .executeTakeFirst();
  }

  /** Deletes all variants and versions of a template; false if there is none. */
  async remove(name: string): Promise<boolean> {
    return this.#database.transaction(async (trx) => {
      await trx.deleteFrom("notify_template_versions").where("name", "=", name).execute();
      const { numDeletedRows } = await trx
        .deleteFrom("notify_templates")
        .where("name", "=", name)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    });
  }

  /** Number of templates, without their variants. */
  async count(): Promise<number> {
    const { count } = await this.#database.db
      .selectFrom("notify_templates")
      .select((eb) => eb.fn.count<number>("name").distinct().as("count"))
      .executeTakeFirstOrThrow();
    return count;
  }

  #active() {
    return this.#database.db
      .selectFrom("notify_templates")
      .innerJoin("notify_template_versions", (join) =>
        join
          .onRef("notify_template_versions.name", "=", "notify_templates.name")
          .onRef("notify_template_versions.locale", "=", "notify_templates.locale")
          .onRef("notify_template_versions.version", "=", "notify_templates.version"),
      )
      .selectAll("notify_template_versions")
      .select("notify_templates.updated_at");
  }
}

function createConflict(active: number | undefined): PlatformError {
  const detail =
    active === 0
      ? "The template does not exist any more."
      : "The template exists in another version; read it again.";
  return new PlatformError("precondition_failed", detail, {
    fields: active === undefined ? {} : { version: active },
  });
}
