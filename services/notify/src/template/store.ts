// Templates in the database: variants by language, with all of their versions.
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

  /** Adds a version of a variant and activates it; returns its number. The oldest versions are deleted. */
  async save(name: string, locale: string, content: TemplateContent): Promise<number> {
    const nowMs = this.#clock.now();
    return this.#database.transaction(async (trx) => {
      const last = await trx
        .selectFrom("notify_template_versions")
        .select((eb) => eb.fn.max("version").as("version"))
        .where("name", "=", name)
        .where("locale", "=", locale)
        .executeTakeFirst();
      const version = (last?.version ?? 0) + 1;
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

  /** Returns the versions of a variant, newest first. */
  async listVersions(name: string, locale: string): Promise<TemplateVersionRow[]> {
    return this.#database.db
      .selectFrom("notify_template_versions")
      .selectAll()
      .where("name", "=", name)
      .where("locale", "=", locale)
      .orderBy("version", "desc")
      .execute();
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
